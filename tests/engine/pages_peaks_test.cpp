// Peaks of small and of large memory where pages go from the one to the other.
#include "tests/engine/pages_support.hpp"

namespace cistern::test {

// At low tide the pages that small blocks had go home, and the large memory is as much as before.
TEST_CASE("the peak of large reserved bytes sees what a low tide sends home", "[engine][pages]") {
  SimRig rig("backing:pages,recycle:eager,thread_cache:off");
  CachingAllocator& allocator = rig.allocator;
  const Stream stream = rig.stream();
  const auto reserved = [&] {
    return allocator.memoryStats().large[std::size_t(Stat::kReservedBytes)];
  };
  const auto small = [&] {
    std::vector<void*> blocks;
    for (int i = 0; i < 40; ++i) blocks.push_back(allocator.allocate(kMiB, stream));
    return blocks;
  };
  allocator.free(allocator.allocate(64 * kMiB, stream));
  const std::int64_t home = reserved().current;
  std::vector<void*> blocks = small();  // out of the large one's pages
  REQUIRE(reserved().current < home);
  allocator.resetPeakStats();
  for (void* block : blocks) allocator.free(block);
  blocks = small();  // nobody has looked in between
  REQUIRE(reserved().current < home);
  CHECK(allocator.memoryStats().peaks_exact);
  CHECK(reserved().peak == home);
  for (void* block : blocks) allocator.free(block);
  allocator.audit();
}

}  // namespace cistern::test
