// Stacks of C++ are what the C library's unwinder says, whatever the thread's stack before was.
#include <algorithm>
#include <atomic>
#include <random>
#include <vector>

#include <alloca.h>
#include <execinfo.h>

#include "allocator/history/host_stack.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

using Words = std::vector<std::uintptr_t>;

std::atomic<int> compared{0}, unlike{0};

/// Both, without the frames that differ: those of this function and further in.
[[gnu::noinline]] bool areAlike() {
  Words own(kMostFrames), other(kMostFrames + 16);
  own.resize(gatherHostStack(own.data(), own.size()));
  std::vector<void*> addresses(other.size());
  addresses.resize(std::size_t(::backtrace(addresses.data(), int(addresses.size()))));
  other.clear();
  for (void* address : addresses) other.push_back(reinterpret_cast<std::uintptr_t>(address));
  if (own.size() < 5) return false;
  const auto caller = std::ranges::find(other, own[2]);  // gatherHostStack, this, its caller
  const std::size_t same = std::min(own.size() - 2, std::size_t(other.end() - caller));
  return same > 2 && std::equal(caller, caller + std::ptrdiff_t(same), own.begin() + 2);
}

// Calls from several places, with stacks of several sizes, some of which are not known when it is
// compiled.
[[gnu::noinline]] void walk(std::minstd_rand& random, int depth) {
  const auto dice = random() % 5;
  auto* const room = static_cast<volatile char*>(alloca(16 * (1 + random() % 8)));
  room[0] = 1;
  if (dice == 0 || depth >= 40) {
    unlike += areAlike() ? 0 : 1;
    ++compared;
    return;
  }
  if (dice == 1) walk(random, depth + 1);
  if (dice == 2) walk(random, depth + 2);
  if (dice == 3) [&] { walk(random, depth + 1); }();
  walk(random, depth + 3);
  room[0] = 2;
}

TEST_CASE("stacks are those of the C library's unwinder, whatever the one before was") {
  onThreads(3, [](std::size_t seed) {
    std::minstd_rand random{unsigned(seed) + 1};
    for (int i = 0; i < 200; ++i) walk(random, 30 - i % 10);
  });
  CHECK(compared > 1000);
  CHECK(unlike == 0);
}

}  // namespace
}  // namespace cistern::test
