#include "allocator/engine/pages/parking.hpp"

#include <algorithm>

#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {

// It comes back at home: that mapping must stay until its last use is complete.
void park(Ground& ground, Mapping& from) noexcept {
  ground.table.makeStale(from);
  from.page->mappings.front()->last_use = from.last_use;
  parkAgain(ground, *from.page);
}

void parkAgain(Ground& ground, PhysicalPage& page) noexcept {
  page.parked = true;
  page.counted_by->pageNotes().putAside();
  ground.parked.push_back(&page);
  ground.counters.parked_bytes += page.bytes();
}

std::uint64_t bytesAside(const Ground& ground, const Heap& heap) {
  std::uint64_t bytes = 0;
  for (const PhysicalPage* page : ground.parked)
    bytes += page->counted_by == &heap ? page->bytes() : 0;
  return bytes;
}

std::uint32_t unpark(Ground& ground, PhysicalPage& page, Heap& heap) noexcept {
  std::erase(ground.parked, &page);
  page.parked = false;
  heap.pageNotes().takeFromAside();
  ground.counters.parked_bytes -= page.bytes();
  return epochOf(heap, page.mappings.front()->last_use);
}

bool bringBack(Ground& ground, Heap& heap, std::uint64_t miss) {
  const std::uint32_t aside = heap.pageNotes().aside();
  if (aside == 0) return false;
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) prepareMoves(heap, kind, aside);
  const std::vector<PhysicalPage*> all = ground.parked;
  for (PhysicalPage* page : all) {
    if (page->counted_by != &heap) continue;
    Mapping& home = *page->mappings.front();
    unpark(ground, *page, heap);
    page->brought_for = miss;
    ground.table.makeCurrent(home);
    ground.count(*page, &heap, home.range->kind);
    putIn(heap, home, home.last_use);
  }
  return true;
}

void putAside(Ground& ground, Heap& heap, std::uint64_t miss) {
  const FreePageScan scan(heap, ground.scans, Whither::kWithinPool);
  std::vector<Mapping*> unused;
  for (Mapping* mapping : scan.freeMappings()) {
    const PhysicalPage& page = *mapping->page;
    if (page.brought_for == miss && mapping->is_home && page.late && page.mayLeave())
      unused.push_back(mapping);
  }
  ground.parked.reserve(ground.parked.size() + unused.size());
  takeOut(heap, unused);
  for (Mapping* mapping : unused) park(ground, *mapping);
}

}  // namespace cistern::pages
