// Where a request could be placed once pages have been brought there.
#include "allocator/engine/pages/window.hpp"

#include "tests/engine/pages/one_heap_support.hpp"

namespace cistern::test {
namespace {

using pages::kUnit;
using pages::Mapping;
using pages::Window;

/// Windows in one range, in units of it.
struct WindowsRig : OneHeapOfPages {
  explicit WindowsRig(std::uint32_t units) : only(range(units)) {}
  /// Fills the page with a block.
  Mapping& used(std::uint32_t unit, std::uint32_t units = 1) {
    Mapping& mapping = page(only, unit, units);
    allocateAt(only, unit * kUnit, units * kUnit);
    return mapping;
  }
  bool isAt(const std::optional<Window>& window, std::uint32_t from, std::uint32_t to) const {
    return window && window->range == &only && window->from == only.placeOfUnit(from) &&
           window->to == only.placeOfUnit(to);
  }

  PageRange& only;
};

}  // namespace

TEST_CASE("a window takes the free memory beside a hole, and maps what lacks", "[engine][part]") {
  WindowsRig rig(6);
  rig.used(0);
  rig.page(rig.only, 1);
  rig.used(4);
  const std::optional<Window> window = rig.windowFor(3 * kUnit);
  CHECK(rig.isAt(window, 1, 4));
  CHECK(window->units_to_map == 2);
  CHECK(window->revivals == 0);
  CHECK(window->first->isFree());
  CHECK_FALSE(rig.windowFor(4 * kUnit));
}

TEST_CASE("of several windows the one with the least to map is taken, then the lowest",
          "[engine][part]") {
  WindowsRig rig(14);
  for (const std::uint32_t unit : {2u, 6u, 9u}) rig.used(unit);
  rig.page(rig.only, 7);
  CHECK(rig.isAt(rig.windowFor(2 * kUnit), 7, 9));  // one to map, elsewhere two
  rig.allocateAt(rig.only, 7 * kUnit, kUnit);
  CHECK(rig.isAt(rig.windowFor(2 * kUnit), 0, 2));
  CHECK(rig.isAt(rig.windowFor(3 * kUnit), 3, 6));
  CHECK(rig.isAt(rig.windowFor(4 * kUnit), 10, 14));
}

TEST_CASE("a request that is no multiple of a page takes units whole, but for free memory",
          "[engine][part]") {
  WindowsRig rig(8);
  rig.used(0);
  const std::optional<Window> window = rig.windowFor(2 * kUnit + kGranule);
  CHECK(rig.isAt(window, 1, 4));
  CHECK(window->units_to_map == 3);
}

TEST_CASE("a page that lies free elsewhere is revived where it was, and one in use bars the way",
          "[engine][part]") {
  WindowsRig rig(6);
  Mapping& free_now = rig.page(rig.only, 5);
  rig.used(4);
  Mapping& was = rig.stale(*free_now.page, rig.only, 1);
  const std::optional<Window> window = rig.windowFor(3 * kUnit);
  CHECK(rig.isAt(window, 0, 3));
  CHECK((window->units_to_map == 2 && window->revivals == 1));
  Block& block = rig.allocateAt(rig.only, 5 * kUnit, kGranule);
  CHECK_FALSE(rig.windowFor(3 * kUnit));
  CHECK(rig.isAt(rig.windowFor(2 * kUnit), 2, 4));  // behind it
  rig.release(block);
  was.accessible = 0;
  CHECK_FALSE(rig.windowFor(3 * kUnit));
}

TEST_CASE("a page cannot come into a window that it lies in", "[engine][part]") {
  WindowsRig rig(5);
  Mapping& free_now = rig.page(rig.only, 2);
  rig.stale(*free_now.page, rig.only, 0);
  rig.used(4);
  CHECK_FALSE(rig.windowFor(4 * kUnit));  // its unit 0 would be revived out of its unit 2
  CHECK(rig.windowFor(2 * kUnit));
}

TEST_CASE("where new pages are to be had the window is behind all that was ever mapped",
          "[engine][part]") {
  WindowsRig rig(10);
  rig.used(2);
  Mapping& gone = rig.stale(addPage(rig.table, 99, 1), rig.only, 5);
  rig.table.removeMapping(gone);
  CHECK(rig.isAt(rig.windowFor(2 * kUnit), 0, 2));
  CHECK(rig.isAt(rig.windowFor(2 * kUnit, true), 6, 8));
  CHECK_FALSE(rig.windowFor(5 * kUnit, true));
  CHECK(rig.isAt(rig.windowFor(5 * kUnit), 3, 8));
}

TEST_CASE("a block returns to its place where pages that lie free can come back there",
          "[engine][part]") {
  WindowsRig rig(8);
  Mapping& free_now = rig.page(rig.only, 6);
  rig.used(5);
  rig.stale(*free_now.page, rig.only, 1);
  rig.page(rig.only, 2);
  const Address at = rig.only.placeOfUnit(1) + 3 * kGranule;
  const std::optional<Window> window = rig.windowAt(kUnit, at);
  CHECK(rig.isAt(window, 1, 3));  // the page that it begins in, and half of the next
  CHECK((window->units_to_map == 0 && window->revivals == 1 && window->at == at));
  CHECK_FALSE(rig.windowAt(2 * kUnit, at));                   // nothing is mapped at unit 3
  CHECK_FALSE(rig.windowAt(kUnit, rig.only.placeOfUnit(0)));  // nor at unit 0
  CHECK_FALSE(rig.windowAt(kUnit, rig.only.placeOfUnit(5)));  // in use
  CHECK(rig.windowAt(kUnit, rig.only.placeOfUnit(6)));        // free as it is
  rig.allocateAt(rig.only, 6 * kUnit, kGranule);
  CHECK_FALSE(rig.windowAt(kUnit, at));  // the page that was there is in use
  CHECK(rig.windowAt(kUnit - 4 * kGranule, rig.only.placeOfUnit(2) + kGranule));
}

TEST_CASE("no page returns to a place out of the free block that the place cuts",
          "[engine][part]") {
  WindowsRig rig(4);
  Mapping& below = rig.page(rig.only, 0);
  rig.page(rig.only, 1);
  rig.stale(*below.page, rig.only, 2);
  CHECK(rig.windowAt(kUnit, rig.only.placeOfUnit(1)));
  CHECK_FALSE(rig.windowAt(2 * kUnit, rig.only.placeOfUnit(1)));
}

TEST_CASE("where there is no hole there is no window", "[engine][part]") {
  WindowsRig rig(2);
  rig.page(rig.only, 0, 2);
  CHECK_FALSE(rig.windowFor(2 * kUnit));
  CHECK_FALSE(rig.windowFor(3 * kUnit));
}

}  // namespace cistern::test
