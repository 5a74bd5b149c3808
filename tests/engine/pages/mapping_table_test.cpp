// The ledger of pages, mappings and ranges.
#include "allocator/engine/pages/mapping_table.hpp"

#include <deque>
#include <new>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::test {
namespace {

using pages::Mapping;
using pages::PageRange;
using pages::PhysicalPage;

/// A ledger of a heap that places nothing.
struct Ledger {
  Ledger() : first(range(8)), second(range(8)) {}
  ~Ledger() { table.audit(); }
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  PageRange& range(std::uint32_t units) {
    PageRange& made = table.addRange();
    made.bytes = made.reserved_bytes = units * pages::kUnit;
    made.home = &heap;
    made.slots.resize(units);
    return made;
  }
  PhysicalPage& page(std::uint32_t units) { return table.addPage(Page{++handle}, units); }
  /// A page where it belongs now.
  Mapping& current(PageRange& in, std::uint32_t unit, std::uint32_t units = 1) {
    Mapping& mapping = table.addMapping(page(units), in, unit);
    mapping.accessible = 1;
    table.makeCurrent(mapping);
    return mapping;
  }
  /// The stale ones that may go, by age.
  std::vector<Mapping*> stale() const {
    std::vector<Mapping*> all;
    for (Mapping* m = table.oldestStale(); m; m = m->beside.younger) all.push_back(m);
    CHECK(all.size() == table.staleMappings());
    return all;
  }
  std::vector<PhysicalPage*> spares() const {
    std::vector<PhysicalPage*> all;
    for (PhysicalPage* p = table.spares(); p; p = p->next_spare) all.push_back(p);
    return all;
  }

  SizeRules rules{Options{}};
  Pool pool{true, rules, true};
  Totals totals;
  Heap heap{pool, Stream{1}, 0, totals};
  pages::MappingTable table;
  std::uint64_t handle = 0;
  PageRange &first, &second;
};

using StaleOnes = std::vector<Mapping*>;

}  // namespace

TEST_CASE("a mapping covers its units, and nothing when it is removed", "[engine][part]") {
  Ledger ledger;
  PhysicalPage& page = ledger.page(3);
  Mapping& mapping = ledger.table.addMapping(page, ledger.first, 2);
  ledger.table.audit();
  for (std::uint32_t unit = 0; unit < 8; ++unit)
    CHECK(ledger.first.slots[unit] == (unit >= 2 && unit < 5 ? &mapping : nullptr));
  CHECK((mapping.units() == 3 && mapping.endUnit() == 5 && mapping.is_home));
  CHECK(mapping.place() == ledger.first.placeOfUnit(2));
  CHECK(ledger.first.touched == 5);
  ledger.table.removeMapping(mapping);
  for (const Mapping* slot : ledger.first.slots) CHECK(slot == nullptr);
  CHECK(ledger.first.touched == 5);  // there was one
  CHECK(ledger.spares() == std::vector{&page});
  ledger.table.audit();
}

TEST_CASE("a page is reached through one mapping, and the others are stale by age",
          "[engine][part]") {
  Ledger ledger;
  Mapping& home = ledger.current(ledger.first, 0);
  CHECK(ledger.stale().empty());
  CHECK((home.isCurrent() && !home.removable()));
  Mapping& away = ledger.table.addMapping(*home.page, ledger.second, 4);
  CHECK(ledger.stale() == StaleOnes{&away});
  ledger.table.makeStale(home);
  CHECK(ledger.stale() == StaleOnes{&away, &home});
  ledger.table.makeCurrent(away);
  CHECK(ledger.stale() == StaleOnes{&home});
  CHECK(home.page->current == &away);
  ledger.table.makeStale(away);
  ledger.table.makeCurrent(home);
  ledger.table.makeStale(home);
  CHECK(ledger.stale() == StaleOnes{&away, &home});
  ledger.table.audit();
}

TEST_CASE("what a graph has pinned is not stale, and is the youngest when it is let go",
          "[engine][part]") {
  Ledger ledger;
  Mapping& pinned = ledger.current(ledger.first, 0);
  PhysicalPage& page = *pinned.page;
  Mapping& other = ledger.table.addMapping(page, ledger.second, 0);
  other.accessible = 1;
  ledger.table.pin(pinned);
  ledger.table.pin(pinned);
  CHECK_FALSE(page.mayLeave());
  ledger.table.makeStale(pinned);
  ledger.table.makeCurrent(other);
  CHECK(ledger.stale().empty());
  ledger.table.audit();
  ledger.table.makeStale(other);
  ledger.table.makeCurrent(other);
  ledger.table.unpin(pinned);
  CHECK((ledger.stale().empty() && page.pins == 1));
  ledger.table.unpin(pinned);
  CHECK(ledger.stale() == StaleOnes{&pinned});
  CHECK(page.mayLeave());
}

TEST_CASE("a page's home is the first of its mappings that are left", "[engine][part]") {
  Ledger ledger;
  Mapping& first = ledger.current(ledger.first, 0);
  Mapping& second = ledger.table.addMapping(*first.page, ledger.second, 0);
  Mapping& third = ledger.table.addMapping(*first.page, ledger.second, 1);
  CHECK((first.is_home && !second.is_home && !third.is_home));
  ledger.table.makeStale(first);
  ledger.table.removeMapping(first);
  CHECK((second.is_home && !third.is_home));
  ledger.table.audit();
  CHECK(ledger.spares().empty());
}

TEST_CASE("pages are counted while they are there, and spares can go from anywhere in their list",
          "[engine][part]") {
  Ledger ledger;
  PhysicalPage* made[5];
  for (std::uint32_t i = 0; i < 5; ++i) {
    made[i] = &ledger.page(1 + i);
    ledger.table.makeSpare(*made[i]);
    ledger.table.makeSpare(*made[i]);  // it is one already
  }
  CHECK(ledger.table.bytes() == 15 * pages::kUnit);
  for (const int i : {2, 4, 0, 1, 3}) {
    ledger.table.removePage(*made[i]);
    ledger.table.audit();
  }
  CHECK((ledger.table.bytes() == 0 && ledger.table.pages().empty() && ledger.spares().empty()));
}

TEST_CASE("among random steps the ledger always says what holds", "[engine][part]") {
  std::mt19937 random(3);
  Ledger ledger;
  std::deque<PhysicalPage*> pages;
  std::size_t most = 0;
  for (int step = 0; step < 3'000; ++step) {
    if (pages.size() < 6) {
      pages.push_back(&ledger.page(1 + std::uint32_t(step) % 2));
      ledger.table.makeSpare(*pages.back());
    }
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
        ledger.table.takeSpare(page);
        ledger.table.addMapping(page, range, unit).accessible = 1;
        break;
      case 2:
        if (some && !page.current) ledger.table.makeCurrent(*some);
        break;
      case 3:
        if (page.current && page.pins == 0) ledger.table.makeStale(*page.current);
        break;
      case 4:
        if (some && some->pins > 0)
          ledger.table.unpin(*some);
        else if (page.current)
          ledger.table.pin(*page.current);
        break;
      default:
        if (some && some->removable()) ledger.table.removeMapping(*some);
    }
    most = std::max(most, ledger.table.staleMappings());
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
      ledger.table.makeSpare(ledger.page(1));
    } catch (const std::bad_alloc&) {
    }
    CHECK(ledger.table.pages().size() == pages + ledger.spares().size());
    CHECK(ledger.table.bytes() == ledger.table.pages().size() * pages::kUnit);
    CHECK((ledger.second.slots[0] != nullptr) == (home.page->mappings.size() == 2));
    ledger.table.audit();
  }
}

#endif

}  // namespace cistern::test
