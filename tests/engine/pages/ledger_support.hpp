// What the tests of the ledger of pages share: a ledger with two ranges, which is walked at the
// end.
#pragma once

#include <vector>

#include "tests/engine/pages/table_support.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {

/// A ledger of a heap that places nothing.
struct Ledger {
  using Mapping = pages::Mapping;
  using PageRange = pages::PageRange;
  using PhysicalPage = pages::PhysicalPage;

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
  PhysicalPage& page(std::uint32_t units) { return addPage(table, ++handle, units); }
  /// A page where it belongs now.
  Mapping& current(PageRange& in, std::uint32_t unit, std::uint32_t units = 1) {
    Mapping& mapping = table.addMapping(page(units), in, unit);
    mapping.accessible = 1;
    table.makeCurrent(mapping);
    return mapping;
  }
  /// The stale ones that may go, by age.
  std::vector<Mapping*> stale() {
    std::vector<Mapping*> all;
    for (Mapping& mapping : table.staleMappings()) all.push_back(&mapping);
    return all;
  }
  std::vector<PhysicalPage*> spares() {
    std::vector<PhysicalPage*> all;
    for (PhysicalPage& page : table.pages()) {
      if (page.spare()) all.push_back(&page);
    }
    return all;
  }

  SizeRules rules{Options{}};
  Pool pool{true, rules, MemoryKind::kPages};
  Totals totals;
  Heap heap{pool, Stream{1}, pool.heapOptions(), totals};
  pages::MappingTable table;
  std::uint64_t handle = 0;
  PageRange &first, &second;
};

}  // namespace cistern::test
