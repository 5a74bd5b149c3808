// As many pairs of 512 bytes as the command line says, on a simulated device, through one of the
// shared library's doors: "verbs", "functions" (cistern::allocate) or "c". Nothing else happens in
// runPairs, whose name is what callgrind looks for.
#include <cstdlib>
#include <string_view>

#include "cistern/cistern.h"
#include "cistern/memory.hpp"

namespace cistern::golden {

[[gnu::noinline]] void runPairs(CachingAllocator& allocator, long pairs);
[[gnu::noinline]] void runPairs(long pairs);
[[gnu::noinline]] void runPairs(cistern_allocator_t allocator, long pairs);

void runPairs(CachingAllocator& allocator, long pairs) {
  for (long i = 0; i < pairs; ++i) allocator.free(allocator.allocate(512, Stream{}));
}

void runPairs(long pairs) {
  for (long i = 0; i < pairs; ++i) cistern::free(cistern::allocate(512, Stream{}));
}

void runPairs(cistern_allocator_t allocator, long pairs) {
  void* block = nullptr;
  for (long i = 0; i < pairs; ++i) {
    (void)cistern_allocate(allocator, 512, nullptr, &block);
    (void)cistern_free(allocator, block);
  }
}

}  // namespace cistern::golden

// The first of each call makes what a thread has of its own, and binds the symbol.
int main(int argc, char** argv) {
  using namespace cistern;
  if (argc != 3) return 2;
  const long pairs = std::atol(argv[1]);
  const std::string_view door = argv[2];
  CachingAllocator& own = allocator(0);
  cistern_allocator_t handle = nullptr;
  if (cistern_default_allocator(0, &handle) != CISTERN_OK) return 1;
  for (const long count : {10L, pairs}) {
    if (door == "verbs") golden::runPairs(own, count);
    if (door == "functions") golden::runPairs(count);
    if (door == "c") golden::runPairs(handle, count);
  }
}
