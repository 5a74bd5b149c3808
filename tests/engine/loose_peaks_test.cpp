// When exact peaks are given up, because threads would hold each other still all the time, and when
// they come back.
#include <chrono>
#include <future>
#include <stdexcept>

#include "tests/engine/loose_peaks_support.hpp"

namespace cistern::test {

TEST_CASE("peaks become loose when hits have held other threads still a hundred times",
          "[engine]") {
  LooseRig rig;
  for (int round = 0; round < 2; ++round) {
    rig.climb(LooseRig::kTimes - 1);
    CHECK(rig.allocator.memoryStats().peaks_exact);
    CHECK(rig.of(Stat::kAllocation).peak == LooseRig::kTimes - 1);
    rig.climb(1);
    CHECK_FALSE(rig.allocator.memoryStats().peaks_exact);
    rig.letGo();
    CHECK_FALSE(rig.allocator.memoryStats().peaks_exact);  // and stay so
    rig.allocator.resetPeakStats();                        // from here it is counted anew
  }
}

TEST_CASE("a thread that holds nobody still keeps exact peaks", "[engine]") {
  LooseRig rig;
  rig.other.end();
  rig.climb(4 * LooseRig::kTimes);
  rig.letGo();
  CHECK(rig.allocator.memoryStats().peaks_exact);
  CHECK(rig.of(Stat::kAllocation).peak == 4 * LooseRig::kTimes);
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)
TEST_CASE("a hit that finds another thread at a settlement does not wait for it", "[engine]") {
  LooseRig rig("thread_cache:off");
  // Whoever looks at all heaps needs host memory for it: that is when the other thread comes by.
  const std::uint64_t misses = rig.allocator.misses();
  void* block = nullptr;
  std::future<void> done;
  bool waited = false;
  {
    const AtHostAllocations hit([&] {
      if (done.valid()) return;
      done = std::async(std::launch::async, [&] { block = rig.allocator.allocate(512, rig.own); });
      waited = done.wait_for(std::chrono::seconds(20)) != std::future_status::ready;
    });
    (void)rig.allocator.cacheInfo();
  }
  CHECK_FALSE(rig.allocator.memoryStats().peaks_exact);
  REQUIRE(done.valid());
  done.get();
  REQUIRE(rig.allocator.misses() == misses);
  CHECK_FALSE(waited);
  CHECK(rig.of(Stat::kAllocation).current == 1);
  CHECK(rig.of(Stat::kAllocation).peak == 1);
  rig.allocator.free(block);
  rig.allocator.resetPeakStats();
  CHECK(rig.allocator.memoryStats().peaks_exact);
}
#endif

TEST_CASE("after a reset peaks are those of the sum again", "[engine]") {
  LooseRig rig;
  rig.becomeLoose();
  // While they are loose each stream may go as high as it has been without asking.
  rig.allocator.free(rig.allocator.allocate(32 * kMiB, rig.own));
  rig.other.free(rig.allocator, rig.other.allocate(rig.allocator, 32 * kMiB, rig.others));
  rig.allocator.resetPeakStats();
  const MemoryStats reset = rig.allocator.memoryStats();
  CHECK(reset.peaks_exact);
  CHECK(reset[Stat::kAllocatedBytes].peak == 0);
  void* a = rig.allocator.allocate(16 * kMiB, rig.own);
  void* b = rig.other.allocate(rig.allocator, 16 * kMiB, rig.others);
  rig.allocator.free(a);
  rig.other.free(rig.allocator, b);
  CHECK(rig.peakBytes() == mib(32));
  CHECK(rig.allocator.memoryStats().peaks_exact);
}

TEST_CASE("after a reset peaks are exact of what lies in caches too", "[engine]") {
  LooseRig rig;
  const auto give = [&](std::size_t bytes) {
    rig.other.free(rig.allocator, rig.other.allocate(rig.allocator, bytes, rig.others));
  };
  rig.becomeLoose();
  give(600);
  give(1'000);  // the same block, for more than there is room for: it gets that for nothing
  rig.allocator.resetPeakStats();
  give(1'000);
  rig.climb(10);  // what lies in the cache is free to the program
  void* cached = rig.other.allocate(rig.allocator, 1'000, rig.others);
  rig.other.free(rig.allocator, cached);
  rig.letGo();
  CHECK(rig.peakBytes() == 10 * 512 + 1'024);
  CHECK(rig.of(Stat::kRequestedBytes).peak == 10 * 512 + 1'000);
  CHECK(rig.of(Stat::kAllocation).peak == 11);
}

}  // namespace cistern::test
