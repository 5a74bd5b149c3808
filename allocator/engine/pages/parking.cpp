#include "allocator/engine/pages/parking.hpp"

#include <utility>

#include "allocator/engine/engine.hpp"
#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {
namespace {

/// At most this part of a heap's memory is put aside at a low water.
constexpr std::uint64_t kPartAside = 16;

bool parks(const Ground& ground, Heap& heap) CISTERN_REQUIRES(heap.mutex()) {
  return !without(Mechanism::kParking) && ground.recycles() && heap.pool().isDefault() &&
         heap.completion().recorded() == 0;
}

bool hasHomeIn(const Heap& heap, const PhysicalPage& page) {
  return page.home().accessible && page.home().range->home == &heap;
}

bool goesAside(const Heap& heap, const PhysicalPage& page) {
  return page.late && page.mayLeave() && hasHomeIn(heap, page);
}

// Where late pages are too many to lie aside they are late no longer.
void forgetLate(const FreePageScan& scan, Heap& heap) CISTERN_REQUIRES(heap.mutex()) {
  if (without(Mechanism::kParkedMostly)) return;
  std::uint64_t memory = 0, late = 0;
  for (SizeKind kind : kSizeKinds) memory += heap.layout(kind).totals().segment_bytes;
  for (const Mapping* mapping : scan.freeMappings())
    late += mapping->page->late ? mapping->bytes() : 0;
  if (late <= memory / kPartAside) return;
  for (const Mapping* mapping : scan.freeMappings()) mapping->page->late = false;
}

// Pages leave free memory for their home, or for aside. All leave before the first arrives: what
// arrives may merge the blocks that others leave.
void send(Ground& ground, Heap& heap, std::vector<Mapping*>& away, bool parks)
    CISTERN_REQUIRES(heap.mutex()) {
  ground.parked.reserve(ground.parked.size() + away.size());
  takeOut(heap, away);
  for (Mapping* from : away) {
    PhysicalPage& page = *from->page;
    ground.table.makeStale(*from);
    page.home().last_use = from->last_use;  // it must stay until that is complete
    if (parks && goesAside(heap, page)) park(ground, page);
  }
  for (const Mapping* from : away) {
    if (from->page->parked) continue;
    arrive(ground, heap, from->page->home(), from->last_use);
    ++ground.counters.revived;
  }
}

}  // namespace

// The first home is where a low water finds the page. (In other pools graphs come back to where
// the first of them has found its pages.)
void sendHome(Ground& ground, Heap& heap) {
  heap.lowWater().noteReached(heap.busyBytes());
  bringBack(ground, heap);
  const FreePageScan scan(heap, ground.scans, Whither::kWithinPool);
  const bool aside = parks(ground, heap), settles = heap.pool().isDefault();
  if (aside) forgetLate(scan, heap);
  std::vector<Mapping*> away;
  for (Mapping* mapping : scan.freeMappings()) {
    PhysicalPage& page = *mapping->page;
    if (settles && !std::exchange(page.settled, true)) ground.table.makeHome(*mapping);
    const bool leaves = hasHomeIn(heap, page) && !mapping->isHome();
    if (leaves || (aside && goesAside(heap, page))) away.push_back(mapping);
  }
  send(ground, heap, away, aside);
}

void putAside(Ground& ground, Heap& heap) {
  if (!parks(ground, heap)) return;
  const FreePageScan scan(heap, ground.scans, Whither::kWithinPool);
  std::vector<Mapping*> unused;
  for (Mapping* mapping : scan.freeMappings()) {
    if (mapping->isHome() && goesAside(heap, *mapping->page)) unused.push_back(mapping);
  }
  send(ground, heap, unused, true);
}

void park(Ground& ground, PhysicalPage& page) noexcept {
  page.parked = true;
  page.counted_by->pageNotes().putAside();
  ground.parked.push_back(&page);
  ground.counters.parked_bytes += page.bytes();
}

std::uint32_t unpark(Ground& ground, PhysicalPage& page, Heap& heap) noexcept {
  std::erase(ground.parked, &page);
  page.parked = false;
  heap.pageNotes().takeFromAside();
  ground.counters.parked_bytes -= page.bytes();
  return epochOf(heap, page.home().last_use);
}

void bringBack(Ground& ground, Heap& heap) {
  const std::uint32_t aside = heap.pageNotes().aside();
  if (aside == 0) return;
  prepareMoves(heap, aside);
  for (PhysicalPage* page : std::vector(ground.parked)) {
    if (page->counted_by != &heap) continue;
    unpark(ground, *page, heap);
    arrive(ground, heap, page->home(), page->home().last_use);
  }
}

}  // namespace cistern::pages
