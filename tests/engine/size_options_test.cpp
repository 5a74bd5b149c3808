// What the options do to sizes and segments.
#include "tests/engine/engine_support.hpp"

namespace cistern::test {

TEST_CASE("divisions between powers of two round requests up", "[engine]") {
  SimRig rig("roundup_power2_divisions:4");
  const std::pair<std::size_t, std::size_t> sizes[] = {{512, 512},
                                                       {1500, 1536},
                                                       {2048, 2048},
                                                       {2049, 2560},
                                                       {1200 * kKiB, 1280 * kKiB},
                                                       {9 * kMiB, 10 * kMiB},
                                                       {16 * kMiB, 16 * kMiB},
                                                       {17 * kMiB, 20 * kMiB}};
  for (const auto& [asked, given] : sizes) {
    void* block = rig.allocator.allocate(asked);
    CHECK(rig.allocator.blockSize(block) == given);
    rig.allocator.free(block);
  }
}

TEST_CASE("divisions can differ from size to size", "[engine]") {
  SimRig rig("roundup_power2_divisions:[2:1,4:8,>:2]");
  const std::pair<std::size_t, std::size_t> sizes[] = {
      {3 * kMiB + 1, 3 * kMiB + 512}, {4 * kMiB + 1, 4 * kMiB + 512 * kKiB}, {9 * kMiB, 12 * kMiB}};
  for (const auto& [asked, given] : sizes) {
    void* block = rig.allocator.allocate(asked);
    CHECK(rig.allocator.blockSize(block) == given);
    rig.allocator.free(block);
  }
}

TEST_CASE("blocks of the largest split size and above stay whole and serve only large requests",
          "[engine]") {
  SimRig rig("backing:segments,max_split_size:40M,max_non_split_rounding:20M");
  CachingAllocator& allocator = rig.allocator;
  void* large = allocator.allocate(60 * kMiB);
  allocator.free(large);
  void* below = allocator.allocate(30 * kMiB);  // not out of the 60
  CHECK(reservedOf(allocator) == mib(90));
  void* near = allocator.allocate(45 * kMiB);  // within 20 MiB of 60: all of it
  CHECK(near == large);
  CHECK(allocator.blockSize(near) == 60 * kMiB);
  allocator.free(near);
  void* far = allocator.allocate(40 * kMiB);  // exactly 20 MiB less
  CHECK(far == large);
  allocator.free(far);
  void* too_far = allocator.allocate(200 * kMiB);
  allocator.free(too_far);
  CHECK(allocator.allocate(100 * kMiB) != too_far);
  CHECK(reservedOf(allocator) == mib(90 + 200 + 100));
  allocator.free(below);
}

TEST_CASE("a request just below the largest split size is served from its own freed segment",
          "[engine]") {
  for (const char* conf :
       {"max_split_size:32M", "max_split_size:33M", "max_split_size:20M,large_segment_size:64M"}) {
    INFO(conf);
    SimRig rig(conf);
    for (std::size_t bytes : {31 * kMiB + 512 * kKiB, 32 * kMiB, 33 * kMiB - 512, 5 * kMiB,
                              19 * kMiB + 512 * kKiB, 2 * kMiB}) {
      rig.allocator.emptyCache();
      for (int i = 0; i < 20; ++i) rig.allocator.free(rig.allocator.allocate(bytes));
      CHECK(reservedOf(rig.allocator) <= std::int64_t(std::max(bytes + 2 * kMiB, 20 * kMiB)));
    }
  }
}

TEST_CASE("segments for medium requests have the size that was chosen", "[engine]") {
  SimRig rig("backing:segments,large_segment_size:64M");
  CachingAllocator& allocator = rig.allocator;
  void* medium = allocator.allocate(31 * kMiB);
  CHECK(allocator.getBaseAllocation(medium).bytes == 64 * kMiB);
  void* half = allocator.allocate(34 * kMiB);
  CHECK(allocator.getBaseAllocation(half).bytes == 34 * kMiB);
}

TEST_CASE("growth is as small as it must be where there is no more room", "[engine]") {
  SimRig rig("", simOf(32 * kMiB));
  void* held = rig.allocator.allocate(26 * kMiB);
  void* medium = rig.allocator.allocate(5 * kMiB);
  if (!onPages(rig.allocator)) {
    CHECK(rig.allocator.getBaseAllocation(medium).bytes == 6 * kMiB);
  }
  CHECK(reservedOf(rig.allocator) == mib(32));
  rig.allocator.free(held);
}

}  // namespace cistern::test
