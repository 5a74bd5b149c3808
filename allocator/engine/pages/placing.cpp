#include "allocator/engine/pages/placing.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/engine/engine.hpp"

namespace cistern::pages {

Block& holeAt(Heap& heap, const PageRange& range, Address place) {
  for (Block* hole = heap.layout(range.kind).holes(); hole; hole = hole->links.right) {
    if (hole->segment == &range && hole->address() <= place && place < hole->end()) return *hole;
  }
  CISTERN_CHECK(false);
  __builtin_unreachable();
}

void prepareMoves(Heap& heap, std::size_t pages) {
  if (pages == 0) return;
  for (SizeKind kind : kSizeKinds) heap.layout(kind).prepareHoles(unsigned(2 * pages));
}

// In a range the highest leave first, so that what is below stays the same block.
void takeOut(Heap& heap, std::vector<Mapping*>& mappings) {
  std::ranges::sort(mappings, [](const Mapping* a, const Mapping* b) {
    return a->range != b->range ? a->range->base < b->range->base : a->unit > b->unit;
  });
  prepareMoves(heap, mappings.size());
  for (const Mapping* mapping : mappings)
    heap.punch(mapping->range->kind, *mapping->found.in, mapping->place(), mapping->placeEnd());
}

void reserve(Heap& heap, std::vector<Mapping*>& mappings) {
  takeOut(heap, mappings);
  for (const Mapping* mapping : mappings) heap.layout(mapping->range->kind).reserveFill();
}

Block* putIn(Heap& heap, const Mapping& mapping, std::uint64_t last_use) noexcept {
  const PageRange& range = *mapping.range;
  return heap.fill(range.kind, holeAt(heap, range, mapping.place()), mapping.place(),
                   mapping.placeEnd(), last_use);
}

static Block* arriveIn(Ground& ground, Heap& heap, Block& hole, Mapping& at,
                       std::uint64_t last_use) noexcept CISTERN_REQUIRES(heap.mutex()) {
  ground.table.makeCurrent(at);
  ground.count(*at.page, &heap, at.range->kind);
  return heap.fill(at.range->kind, hole, at.place(), at.placeEnd(), last_use);
}

Block* arrive(Ground& ground, Heap& heap, Mapping& at, std::uint64_t last_use) noexcept {
  return arriveIn(ground, heap, holeAt(heap, *at.range, at.place()), at, last_use);
}

// The page is aside no longer: somebody takes it into use. Pre: the lock of its heap is held.
static void takeFromAside(PhysicalPage& page) noexcept {
  std::erase(page.counted_by->pageNotes().aside, &page.home());
  page.aside = false;
}

// All leave before the first arrives: what arrives may merge the blocks that others leave.
Block* revive(Ground& ground, Heap& heap, const std::vector<Mapping*>& at) {
  std::vector<Mapping*> from;
  for (const Mapping* mapping : at) {
    if (!mapping->page->aside) from.push_back(mapping->page->current);
  }
  prepareMoves(heap, at.size());
  takeOut(heap, from);
  for (Mapping* mapping : at) {
    PhysicalPage& page = *mapping->page;
    mapping->last_use = page.aside ? page.home().last_use : page.current->last_use;
    heap.completion().noteLeft(mapping->last_use);
    page.aside ? takeFromAside(page) : ground.table.makeStale(*page.current);
  }
  Block* last = nullptr;
  for (Mapping* mapping : at) last = arrive(ground, heap, *mapping, mapping->last_use);
  ground.counters.revived += at.size();
  return last;
}

namespace {

bool liesBefore(const Mapping* a, const Mapping* b) {
  return a->range != b->range ? a->range->base < b->range->base : a->unit < b->unit;
}

// The page leaves the free block around it. `at` notes when it was used last.
void leave(Ground& ground, Mapping& at) noexcept {
  Mapping& from = *at.page->current;
  Heap &source = *from.range->home, &heap = *at.range->home;
  source.mutex().assertHeld();
  heap.mutex().assertHeld();
  Block& free = *from.found.in;
  from.last_use = source.completion().epochOf(free.epoch);
  source.punch(from.range->kind, free, from.place(), from.placeEnd());
  source.completion().noteLeft(from.last_use);
  ground.table.makeStale(from);
  at.last_use = &heap == &source ? from.last_use : heap.completion().now();
}

}  // namespace

// All leave before the first arrives, the highest of a range first, so that what is below stays the
// same block. Then each arrives in the hole that the search has come to.
void comeBack(Ground& ground, std::vector<Mapping*>& at) noexcept {
  std::ranges::sort(at, [](const Mapping* a, const Mapping* b) {
    return liesBefore(a->page->current, b->page->current);
  });
  AscendingSearch search;
  for (Mapping* mapping : at) {
    Mapping& from = *mapping->page->current;
    from.found.in = search.covering(*from.range, from.place());
  }
  for (std::size_t i = at.size(); i-- > 0;) leave(ground, *at[i]);
  std::ranges::sort(at, liesBefore);
  search.beginAnew();
  for (Mapping* mapping : at) {
    Heap& heap = *mapping->range->home;
    heap.mutex().assertHeld();
    Block& hole = *search.covering(*mapping->range, mapping->place());
    search.goOnFrom(*arriveIn(ground, heap, hole, *mapping, mapping->last_use));
  }
  ground.counters.revived += at.size();
}

// ---- At low water -------------------------------------------------------------------------------

/// At most a sixteenth of a heap's memory is put aside at a low water.
static constexpr std::uint64_t kPartAside = 16;

// A page's home is where a low water finds it first. (In a private pool it stays where the page was
// mapped first. The pool's first graph has it there, and the others find it there.) If late pages
// are too many, they are late no longer. A mapping at rest is passed over, as reading its page
// takes long.
void sendHome(Ground& ground, Heap& heap) {
  heap.lowWater().noteReached(heap.busyBytes());
  bringBack(ground, heap);
  const FreePageScan scan(heap, ground.number);
  const bool settles = heap.pool().isDefault();
  std::vector<Mapping*> homes;
  std::uint64_t late = 0;
  for (Mapping* mapping : scan.freeMappings()) {
    if (mapping->at_rest) continue;
    PhysicalPage& page = *mapping->page;
    if (settles && !page.settled) ground.table.makeHome(*mapping);
    page.settled |= settles;
    if (page.late) late += mapping->bytes();
    Mapping& home = page.home();
    mapping->at_rest = &home == mapping && !page.late;
    if (&home != mapping && home.accessible && home.range->home == &heap) homes.push_back(&home);
  }
  if (late > heap.reservedBytes() / kPartAside && !without(Mechanism::kFewAside)) {
    for (const Mapping* mapping : scan.freeMappings()) mapping->page->late = false;
    late = 0;
  }
  revive(ground, heap, homes);
  if (late > 0) putAside(ground, heap);
}

void putAside(Ground& ground, Heap& heap, std::uint64_t brought_for) noexcept try {
  if (without(Mechanism::kAside) || !ground.recycles() || !heap.pool().isDefault()) return;
  if (heap.completion().recorded() != 0) return;
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

}  // namespace cistern::pages
