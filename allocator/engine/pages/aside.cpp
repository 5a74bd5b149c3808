#include "allocator/engine/pages/aside.hpp"

#include <new>
#include <utility>

#include "allocator/engine/engine.hpp"
#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {
namespace {

/// At most this part of a heap's memory is put aside at a low water.
constexpr std::uint64_t kPartAside = 16;

bool putsAside(const Ground& ground, Heap& heap) CISTERN_REQUIRES(heap.mutex()) {
  return !without(Mechanism::kAside) && ground.recycles() && heap.pool().isDefault() &&
         heap.completion().recorded() == 0;
}

// Late pages that are too many to lie aside are late no longer.
void forgetManyLate(const FreePageScan& scan, Heap& heap) CISTERN_REQUIRES(heap.mutex()) {
  if (without(Mechanism::kFewAside)) return;
  std::uint64_t memory = 0, late = 0;
  for (SizeKind kind : kSizeKinds) memory += heap.layout(kind).totals().segment_bytes;
  for (const Mapping* mapping : scan.freeMappings())
    late += mapping->page->late ? mapping->bytes() : 0;
  if (late <= memory / kPartAside) return;
  for (const Mapping* mapping : scan.freeMappings()) mapping->page->late = false;
}

}  // namespace

// The first home is where a low water finds the page. (In other pools graphs come back to where
// the first of them has found its pages.)
void sendHome(Ground& ground, Heap& heap) {
  heap.lowWater().noteReached(heap.busyBytes());
  bringBack(ground, heap);
  const FreePageScan scan(heap, ground.number);
  const bool settles = heap.pool().isDefault();
  std::vector<Mapping*> homes;
  for (Mapping* mapping : scan.freeMappings()) {
    PhysicalPage& page = *mapping->page;
    if (settles && !std::exchange(page.settled, true)) ground.table.makeHome(*mapping);
    Mapping& home = page.home();
    if (&home != mapping && home.accessible && home.range->home == &heap) homes.push_back(&home);
  }
  forgetManyLate(scan, heap);
  revive(ground, heap, homes);
  putAside(ground, heap);
}

void putAside(Ground& ground, Heap& heap, std::uint64_t brought_for) noexcept try {
  if (!putsAside(ground, heap)) return;
  const FreePageScan scan(heap, ground.number);
  std::vector<Mapping*> late;
  for (Mapping* mapping : scan.freeMappings()) {
    const PhysicalPage& page = *mapping->page;
    const bool meant = brought_for == 0 || page.brought_for == brought_for;
    if (meant && page.late && page.mayLeave() && mapping->isHome()) late.push_back(mapping);
  }
  std::vector<Mapping*>& aside = heap.pageNotes().aside;
  aside.reserve(aside.size() + late.size());
  takeOut(heap, late);
  for (Mapping* mapping : late) {
    ground.table.makeStale(*mapping);
    mapping->page->aside = true;
    aside.push_back(mapping);
  }
} catch (const std::bad_alloc&) {
}

void bringBack(Ground& ground, Heap& heap, std::uint64_t miss) {
  if (heap.pageNotes().aside.empty()) return;
  const std::vector<Mapping*> homes = heap.pageNotes().aside;
  for (const Mapping* home : homes) home->page->brought_for = miss;
  revive(ground, heap, homes);
}

void takeFromAside(PhysicalPage& page) noexcept {
  std::erase(page.counted_by->page_notes.aside, &page.home());
  page.aside = false;
}

}  // namespace cistern::pages
