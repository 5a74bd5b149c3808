// The time of the calls that make, move and give back memory, to the nanosecond of their prices.
#include "allocator/device/sim/costs.hpp"
#include "tests/engine/pages/pages_support.hpp"

namespace cistern::test {
namespace {

namespace cost = sim::cost;

constexpr const char* kAlone = "recycle:eager,background_thread:false,page_size:2MiB";

std::uint64_t timeOf(const SimRig& rig) { return rig.allocator.memoryStats().memory_call_ns; }

/// The price of `pages` pages of 2 MiB that are put behind addresses.
std::uint64_t mapping(std::uint64_t pages) {
  return pages * cost::kMap + cost::setAccess(pages, pages * 2 * kMiB);
}

}  // namespace

TEST_CASE("pages take time when they are made and given back, and none on a hit",
          "[engine][pages]") {
  SimRig rig(kAlone);
  void* block = rig.allocator.allocate(8 * kMiB);
  CHECK(pagesOf(rig.allocator).created == 4);
  const std::uint64_t made = 4 * cost::createPage(2 * kMiB) + mapping(4);
  CHECK(timeOf(rig) == made);
  rig.allocator.free(block);
  block = rig.allocator.allocate(8 * kMiB);
  CHECK(timeOf(rig) == made);
  rig.allocator.free(block);
  rig.allocator.emptyCache();
  CHECK(pagesOf(rig.allocator).returned == 4);
  CHECK(timeOf(rig) == made + 4 * (cost::unmap(1, 2 * kMiB) + cost::releasePage(2 * kMiB)));
}

TEST_CASE("a page that moves takes the time of its mapping, and one that is revived none",
          "[engine][pages]") {
  SimRig rig(kAlone, simOf(kGiB, 1'000'000));
  const Stream s = rig.stream();
  void* low = rig.allocator.allocate(16 * kMiB, s);
  void* high = rig.allocator.allocate(16 * kMiB, s);
  void* held = rig.allocator.allocate(2 * kMiB, s);
  rig.touch(s, low);
  rig.allocator.free(low);
  const std::uint64_t before = timeOf(rig);
  void* moved = rig.allocator.allocate(20 * kMiB, s);  // eight pages of `low`, and two new ones
  CHECK(pagesOf(rig.allocator).recycled == 8);
  const std::uint64_t after = timeOf(rig);
  CHECK(after == before + 2 * cost::createPage(2 * kMiB) + mapping(10));
  for (void* block : {moved, high}) {
    rig.touch(s, block);
    rig.allocator.free(block);
  }
  CHECK(rig.allocator.allocate(32 * kMiB, s) == low);
  CHECK(pagesOf(rig.allocator).revived == 8);
  CHECK(timeOf(rig) == after);
  rig.touch(s, held);
}

TEST_CASE("without pages the calls for segments take time, and no page is counted", "[engine]") {
  SimRig rig("backing:segments");
  rig.allocator.free(rig.allocator.allocate(24 * kMiB));
  const auto bytes = std::uint64_t(reservedOf(rig.allocator));
  CHECK(timeOf(rig) == cost::malloc(bytes));
  rig.allocator.emptyCache();
  CHECK(timeOf(rig) == cost::malloc(bytes) + cost::free(bytes));
  const PageCounts pages = rig.allocator.memoryStats().pages;
  CHECK(pages.created + pages.recycled + pages.revived + pages.retired + pages.returned == 0);
}

}  // namespace cistern::test
