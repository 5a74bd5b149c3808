// Which streams a miss looks at for pages: all that hold any, of whatever kind.
#include "tests/engine/pages/pages_support.hpp"

namespace cistern::test {
TEST_CASE("pages of a stream that has none but small blocks' are found", "[engine][pages]") {
  SimRig rig("recycle:eager,limit:64M,background_thread:false", simOf(kGiB));
  const Stream giver = rig.stream(), taker = rig.stream();
  std::vector<void*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(rig.allocator.allocate(kMiB, giver));
  for (void* block : blocks) rig.allocator.free(block);
  // After the first it is known that all of the giver's work is complete.
  for (const std::size_t bytes : {4 * kMiB, 40 * kMiB}) {
    const PageCounts before = pagesOf(rig.allocator);
    rig.touch(taker, rig.allocator.allocate(bytes, taker));
    const PageCounts after = pagesOf(rig.allocator);
    CHECK(after.recycled > before.recycled);
    CHECK(after.returned == before.returned);
    CHECK(after.created == before.created);
  }
  checkAtRest(rig);
}

}  // namespace cistern::test
