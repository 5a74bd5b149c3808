// Several threads at one pinned allocator.
#include <array>
#include <random>
#include <vector>

#include "tests/pinned/pinned_support.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {

TEST_CASE("threads share a pinned allocator", "[pinned][threads]") {
  PinnedRig rig;
  rig.pinned.setLimit(64 * kMiB);
  constexpr int kThreads = 4;
  std::vector<Stream> streams;
  for (int i = 0; i < kThreads; ++i) streams.push_back(rig.stream());
  std::atomic<std::uint64_t> served{0};
  std::atomic<int> over{0};
  onThreads(kThreads, [&](std::size_t self) {
    std::mt19937_64 random(self + 1);
    struct Held {
      void* block;
      std::size_t bytes;
      std::uint64_t seed;
    };
    std::vector<Held> held;
    for (std::uint64_t step = 0; step < 400; ++step) {
      const std::size_t bytes = 16 + random() % (std::size_t{1} << (10 + random() % 13));
      try {
        held.push_back({rig.pinned.allocate(bytes), bytes, step << 8 | self});
      } catch (const OutOfPinnedMemory&) {
        continue;
      }
      ++served;
      Held& last = held.back();
      PinnedRig::write(last.block, bytes, last.seed);
      const Stream stream = streams[random() % streams.size()];
      rig.pinned.recordStream(last.block, stream);
      rig.copy(stream, last.block, bytes, last.seed, 2'000);
      if (held.size() > random() % 8) {
        std::swap(held.back(), held[random() % held.size()]);
        rig.pinned.free(held.back().block);
        held.pop_back();
      }
      if (step % 100 == 99) rig.pinned.emptyCache();
      if (step % 50 == 0)
        over += rig.pinned.stats().reserved_bytes.current > std::int64_t(64 * kMiB);
    }
    for (const Held& one : held) rig.pinned.free(one.block);
  });
  CHECK(over == 0);
  rig.device->synchronizeDevice().orThrow();
  rig.pinned.emptyCache();
  CHECK(rig.active() == 0);
  CHECK(rig.reserved() == 0);
  CHECK(served > 100);
}

}  // namespace cistern::test
