// Which streams a miss looks at for pages: all that hold any, of whatever kind, and no others.
#include "tests/engine/pages/pages_support.hpp"

namespace cistern::test {
namespace {

/// How often a stream is asked whether it may be used when a miss takes queued memory of another at
/// the limit, beside so many streams that held all of it once.
std::uint64_t askedBeside(std::size_t others) {
  SimRig rig("limit:64M,background_thread:false", simOf(kGiB));
  const Stream giver = rig.stream(), taker = rig.stream();
  for (std::size_t i = 0; i < others; ++i)
    rig.allocator.free(rig.allocator.allocate(60 * kMiB, rig.stream()));
  void* block = rig.allocator.allocate(60 * kMiB, giver);
  rig.work.delay(giver, kLongNs);
  rig.touch(giver, block);
  rig.allocator.free(block);
  const std::uint64_t before = countOf(rig.sim(), Call::kCaptureInfo);
  const std::uint64_t orders = countOf(rig.sim(), Call::kWaitEvent);
  rig.touch(taker, rig.allocator.allocate(40 * kMiB, taker));
  CHECK(countOf(rig.sim(), Call::kWaitEvent) == orders + 1);
  return countOf(rig.sim(), Call::kCaptureInfo) - before;
}

}  // namespace

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

TEST_CASE("streams that are known to hold nothing are not asked", "[engine][pages]") {
  CHECK(askedBeside(12) == askedBeside(1));
}

}  // namespace cistern::test
