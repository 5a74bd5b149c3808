// The ledger of pages among random steps, and without host memory.
#include <algorithm>
#include <deque>
#include <new>
#include <random>

#include "tests/engine/pages/ledger_support.hpp"
#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::test {

using pages::Mapping;
using pages::PageRange;
using pages::PhysicalPage;

TEST_CASE("among random steps the ledger always says what holds", "[engine][part]") {
  std::mt19937 random(3);
  Ledger ledger;
  std::deque<PhysicalPage*> pages;
  std::size_t most = 0;
  for (int step = 0; step < 3'000; ++step) {
    if (pages.size() < 6) pages.push_back(&ledger.page(1 + std::uint32_t(step) % 2));
    PhysicalPage& page = *pages[random() % pages.size()];
    PageRange& range = random() % 2 ? ledger.first : ledger.second;
    const auto unit = std::uint32_t(random() % (9 - page.units));
    bool empty = true;
    for (std::uint32_t u = unit; u < unit + page.units; ++u) empty &= !range.slots[u];
    Mapping* const some =
        page.mappings.empty() ? nullptr : page.mappings[random() % page.mappings.size()];
    switch (random() % 6) {
      case 0:
      case 1:
        if (!empty) break;
        ledger.table.addMapping(page, range, unit).accessible = 1;
        break;
      case 2:
        if (some && !page.current) ledger.table.makeCurrent(*some);
        break;
      case 3:
        if (page.current && page.holds.graphs == 0) ledger.table.makeStale(*page.current);
        break;
      case 4:
        if (some && some->holds.graphs > 0)
          ledger.table.letGo(*some, Footprint::kKind);
        else if (page.current)
          ledger.table.hold(*page.current, Footprint::kKind);
        break;
      default:
        if (some && some->removable()) ledger.table.removeMapping(*some);
    }
    most = std::max(most, ledger.table.staleMappings().size());
    ledger.table.audit();
  }
  CHECK(most > 3);
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)

TEST_CASE("what there is no host memory for is not in the ledger", "[engine][part]") {
  for (int allowed = 0; allowed < 4; ++allowed) {
    Ledger ledger;
    Mapping& home = ledger.current(ledger.first, 0);
    const std::size_t pages = ledger.table.pages().size();
    try {
      int left = allowed;
      const AtHostAllocations few([&] {
        if (left-- == 0) throw std::bad_alloc();
      });
      ledger.table.addMapping(*home.page, ledger.second, 0);
      ledger.page(1);
    } catch (const std::bad_alloc&) {
    }
    CHECK(ledger.table.pages().size() == pages + ledger.spares().size());
    CHECK((ledger.second.slots[0] != nullptr) == (home.page->mappings.size() == 2));
    ledger.table.audit();
  }
}

#endif

}  // namespace cistern::test
