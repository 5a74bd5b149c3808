// Has 64 MiB that it has freed: under `cistern run` they are in a cache. For each line on its
// standard input it takes them and frees them once more, and says so.
#include <cstdio>

#include <unistd.h>

#include "tests/preload/programs/gpu_names.hpp"

namespace {

bool nextLine() {
  char one = 0;
  while (::read(0, &one, 1) == 1) {
    if (one == '\n') return true;
  }
  return false;
}

}  // namespace

int main() {
  constexpr std::size_t kCached = std::size_t{64} << 20;
  constexpr unsigned kWord = 0x600d;
  gpu::begin();
  Memory const kept = allocated();
  EXPECT(gpu::write(kept, &kWord, sizeof kWord) == 0);
  do {
    launch(nullptr, kept);
    EXPECT(gpu::free(allocated(kCached)) == 0);
    EXPECT(gpu::synchronize() == 0);
    unsigned word = 0;
    EXPECT(gpu::read(&word, kept, sizeof word) == 0);
    EXPECT(word == kWord);
    std::puts("freed");
    EXPECT(std::fflush(stdout) == 0);
  } while (nextLine());
}
