// Which pages lie wholly free, and when each of them was used last.
#include "allocator/engine/pages/free_page_scan.hpp"

#include <algorithm>

#include "tests/engine/pages/one_heap_support.hpp"

namespace cistern::test {
namespace {

using pages::FreePageScan;
using pages::Mapping;

struct ScanRig : OneHeapOfPages {
  /// The units of the range at which pages were found that could serve elsewhere.
  std::vector<std::uint32_t> found() {
    const MutexLock lock(heap.mutex());
    const FreePageScan scan(heap, scans);
    std::vector<std::uint32_t> units;
    for (const Mapping* mapping : scan.freeMappings()) {
      CHECK(scan.found(*mapping));
      CHECK(scan.mayMove(*mapping->page));
      CHECK((mapping->found.in->isFree() && mapping->found.in->address() <= mapping->place() &&
             mapping->found.in->end() >= mapping->placeEnd()));
      units.push_back(mapping->unit);
    }
    std::sort(units.begin(), units.end());
    return units;
  }
};

using Units = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("pages that no block lies in are found, whatever their size", "[engine][part]") {
  ScanRig rig;
  pages::PageRange& range = rig.range(12);
  CHECK(rig.found().empty());
  for (const std::uint32_t unit : {0u, 1u, 4u, 5u}) rig.page(range, unit);
  rig.page(range, 6, 3);
  CHECK(rig.found() == Units{0, 1, 4, 5, 6});
  Block& across = rig.allocateAt(range, 6 * pages::kUnit - kGranule, 2 * kGranule);
  CHECK(rig.found() ==
        Units{0, 1, 4});  // it lies in the last granule of one and the first of another
  Block& small = rig.allocateAt(range, pages::kUnit / 2, kGranule);
  CHECK(rig.found() == Units{1, 4});
  rig.release(across);
  CHECK(rig.found() == Units{1, 4, 5, 6});
  rig.release(small);
  CHECK(rig.found() == Units{0, 1, 4, 5, 6});
}

TEST_CASE("a page that a graph reaches may move in its pool, and not beyond", "[engine][part]") {
  ScanRig rig;
  pages::PageRange& range = rig.range(4);
  Mapping& held = rig.page(range, 0);
  rig.table.hold(held, Footprint::kKind);
  CHECK(rig.found() == Units{0});
  CHECK_FALSE(held.page->mayLeave());
  rig.table.letGo(held, Footprint::kKind);
  CHECK(rig.found() == Units{0});
  CHECK(held.page->mayLeave());
}

TEST_CASE("pages of small and of large blocks are found", "[engine][part]") {
  ScanRig rig;
  rig.page(rig.range(4), 3);
  rig.page(rig.range(4, SizeKind::kSmall), 2);
  CHECK(rig.found() == Units{2, 3});
}

TEST_CASE("each page says when it was used last, though the free block is one", "[engine][part]") {
  ScanRig rig;
  pages::PageRange& range = rig.range(4);
  Mapping* mappings[4];
  for (std::uint32_t unit = 0; unit < 4; ++unit) mappings[unit] = &rig.page(range, unit);
  Block& early = rig.allocateAt(range, 0, pages::kUnit);
  Block& late = rig.allocateAt(range, pages::kUnit, 2 * pages::kUnit);
  CHECK(rig.found() == Units{3});
  rig.endEpoch();
  rig.release(early);
  rig.endEpoch();
  rig.endEpoch();
  rig.release(late);
  CHECK(rig.found() == Units{0, 1, 2, 3});
  CHECK(mappings[0]->last_use == 2);
  CHECK(mappings[1]->last_use == 4);
  CHECK(mappings[2]->last_use == 4);
  CHECK(mappings[3]->last_use == 0);
  rig.endEpoch();
  rig.release(rig.allocateAt(range, pages::kUnit + 5 * kGranule, kGranule));
  CHECK(rig.found() == Units{0, 1, 2, 3});
  CHECK(mappings[0]->last_use == 2);  // not drawn along by its neighbour's use
  CHECK(mappings[1]->last_use == 5);
}

TEST_CASE("where frees were forgotten a page is as young as its free block", "[engine][part]") {
  ScanRig rig;
  pages::PageRange& range = rig.range(2);
  Mapping& first = rig.page(range, 0);
  Mapping& second = rig.page(range, 1);
  Block& block = rig.allocateAt(range, pages::kUnit, pages::kUnit);
  rig.endEpoch();
  rig.endEpoch();
  rig.release(block);
  {
    const MutexLock lock(rig.heap.mutex());
    rig.heap.recentFrees().forget(3);
  }
  CHECK(rig.found() == Units{0, 1});
  CHECK(first.last_use == 3);
  CHECK(second.last_use == 3);
}

}  // namespace cistern::test
