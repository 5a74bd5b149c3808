#include "allocator/engine/pages/homing.hpp"

#include "allocator/engine/engine.hpp"
#include "allocator/engine/pages/parking.hpp"
#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {
namespace {

std::uint64_t memoryOf(Heap& heap) CISTERN_REQUIRES(heap.mutex()) {
  return heap.layout(SizeKind::kSmall).totals().segment_bytes +
         heap.layout(SizeKind::kLarge).totals().segment_bytes;
}

// Late pages are few, or are late no longer.
bool parksLate(const FreePageScan& scan, Heap& heap, const Ground& ground)
    CISTERN_REQUIRES(heap.mutex()) {
  if (without(Mechanism::kParking)) return false;
  if (!ground.recycles() || !heap.pool().isDefault() || heap.completion().recorded() != 0)
    return false;
  std::uint64_t late = 0;
  for (const Mapping* mapping : scan.freeMappings())
    late += mapping->page->late ? mapping->bytes() : 0;
  if (late <= memoryOf(heap) / kPartAside || without(Mechanism::kParkedMostly)) return late > 0;
  for (const Mapping* mapping : scan.freeMappings()) mapping->page->late = false;
  return false;
}

bool goesAside(const Mapping& mapping) { return mapping.page->late && mapping.page->mayLeave(); }

// Where they are is their home, if they have none yet. (In other pools graphs come back to where
// the first of them has found its pages.)
void settle(MappingTable& table, const FreePageScan& scan) {
  for (Mapping* mapping : scan.freeMappings()) {
    if (mapping->page->settled) continue;
    mapping->page->settled = true;
    table.makeHome(*mapping);
  }
}

// Those that go home, and those that go aside, which may be at home.
std::vector<Mapping*> leaving(const FreePageScan& scan, const Heap& heap, bool parks) {
  std::vector<Mapping*> away;
  for (Mapping* mapping : scan.freeMappings()) {
    const Mapping& home = *mapping->page->mappings.front();
    if (!home.accessible || home.range->home != &heap) continue;
    if (&home != mapping || (parks && goesAside(*mapping))) away.push_back(mapping);
  }
  return away;
}

std::vector<Mapping*> homesOf(const std::vector<Mapping*>& away) {
  std::vector<Mapping*> homes;
  for (const Mapping* from : away) homes.push_back(from->page->mappings.front());
  return homes;
}

}  // namespace

// All pages leave before the first arrives: what arrives may merge the blocks that others leave.
void sendHome(Ground& ground, Heap& heap) {
  heap.lowWater().noteReached(heap.busyBytes());
  // Pages that have become too many to lie aside belong to what rounds begin with.
  const std::uint64_t aside = bytesAside(ground, heap);
  if (!without(Mechanism::kParkedMostly) && aside > memoryOf(heap) / (kPartAside / 2))
    (void)bringBack(ground, heap);
  const FreePageScan scan(heap, ground.scans, Whither::kWithinPool);
  if (heap.pool().isDefault()) settle(ground.table, scan);
  const bool parks = parksLate(scan, heap, ground);
  std::vector<Mapping*> away = leaving(scan, heap, parks);
  ground.parked.reserve(ground.parked.size() + away.size());
  prepareMoves(heap, homesOf(away));  // which may be among blocks of the other kind
  takeOut(heap, away);
  for (Mapping* from : away) {
    if (parks && goesAside(*from)) {
      park(ground, *from);
    } else {
      ground.table.makeStale(*from);
    }
  }
  for (const Mapping* from : away) {
    if (from->page->parked) continue;
    Mapping& home = *from->page->mappings.front();
    ground.table.makeCurrent(home);
    ++ground.counters.revived;
    ground.count(*home.page, &heap, home.range->kind);
    putIn(heap, home, from->last_use);
  }
}

}  // namespace cistern::pages
