// The ledger of pages, mappings and ranges.
#include "allocator/engine/pages/mapping_table.hpp"

#include "tests/engine/pages/ledger_support.hpp"

namespace cistern::test {
namespace {

using pages::Mapping;
using pages::PhysicalPage;
using StaleOnes = std::vector<Mapping*>;

}  // namespace

TEST_CASE("a mapping covers its units, and nothing when it is removed", "[engine][part]") {
  Ledger ledger;
  PhysicalPage& page = ledger.page(3);
  Mapping& mapping = ledger.table.addMapping(page, ledger.first, 2);
  ledger.table.audit();
  for (std::uint32_t unit = 0; unit < 8; ++unit)
    CHECK(ledger.first.slots[unit] == (unit >= 2 && unit < 5 ? &mapping : nullptr));
  CHECK((mapping.units() == 3 && mapping.end_unit == 5 && mapping.isHome()));
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

TEST_CASE("what a graph holds is not stale, and is the youngest when it is let go",
          "[engine][part]") {
  Ledger ledger;
  Mapping& held = ledger.current(ledger.first, 0);
  PhysicalPage& page = *held.page;
  Mapping& other = ledger.table.addMapping(page, ledger.second, 0);
  other.accessible = 1;
  ledger.table.hold(held, Footprint::kKind);
  ledger.table.hold(held, Footprint::kKind);
  CHECK_FALSE(page.mayLeave());
  ledger.table.makeStale(held);
  ledger.table.makeCurrent(other);
  CHECK(ledger.stale().empty());
  ledger.table.audit();
  ledger.table.makeStale(other);
  ledger.table.makeCurrent(other);
  ledger.table.letGo(held, Footprint::kKind);
  CHECK((ledger.stale().empty() && page.holds.graphs == 1));
  ledger.table.letGo(held, Footprint::kKind);
  CHECK(ledger.stale() == StaleOnes{&held});
  CHECK(page.mayLeave());
}

TEST_CASE("a page's home is the first of its mappings that are left", "[engine][part]") {
  Ledger ledger;
  Mapping& first = ledger.current(ledger.first, 0);
  Mapping& second = ledger.table.addMapping(*first.page, ledger.second, 0);
  Mapping& third = ledger.table.addMapping(*first.page, ledger.second, 1);
  CHECK((first.isHome() && !second.isHome() && !third.isHome()));
  ledger.table.makeStale(first);
  ledger.table.removeMapping(first);
  CHECK((second.isHome() && !third.isHome()));
  ledger.table.audit();
  CHECK(ledger.spares() == std::vector{second.page});  // it is reached nowhere
}

TEST_CASE("where a page's home was before a low water does not leave it any more",
          "[engine][part]") {
  Ledger ledger;
  Mapping& first = ledger.current(ledger.first, 0);
  Mapping& second = ledger.table.addMapping(*first.page, ledger.second, 0);
  first.at_rest = true;
  ledger.table.audit();
  ledger.table.makeHome(second);
  CHECK((second.isHome() && !second.at_rest && !first.at_rest));
  ledger.table.audit();
}

}  // namespace cistern::test
