#include "allocator/engine/pages/placing.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "allocator/base/check.hpp"

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

static Block* arriveIn(State& state, Heap& heap, Block& hole, Mapping& at,
                       std::uint64_t last_use) noexcept CISTERN_REQUIRES(heap.mutex()) {
  state.table.makeCurrent(at);
  state.count(*at.page, &heap, at.range->kind);
  return heap.fill(at.range->kind, hole, at.place(), at.placeEnd(), last_use);
}

Block* arrive(State& state, Heap& heap, Mapping& at, std::uint64_t last_use) noexcept {
  return arriveIn(state, heap, holeAt(heap, *at.range, at.place()), at, last_use);
}

// The page is parked no longer: somebody takes it into use. Pre: the lock of its heap is held.
static void takeFromParked(State& state, PhysicalPage& page) noexcept {
  Heap& heap = *page.counted_by;
  heap.mutex().assertHeld();
  heap.parked_bytes -= page.bytes();
  std::erase(state.notes.of(heap).parked, &page.home());
  page.parked = false;
}

// The heap beside has the same stream. Memory that comes from there counts as used until now.
static void leaveForRevival(State& state, Heap& heap, Mapping& at) noexcept {
  Mapping& from = *at.page->current;
  Heap& source = *from.range->home;
  heap.mutex().assertHeld();
  source.mutex().assertHeld();
  source.completion().noteLeft(from.last_use);
  at.last_use = &source == &heap ? from.last_use : heap.completion().now();
  state.table.makeStale(from);
}

// All leave before the first arrives: what arrives may merge the blocks that others leave.
Block* revive(State& state, Heap& heap, const std::vector<Mapping*>& at) {
  std::vector<Mapping*> from, beside;
  for (const Mapping* mapping : at) {
    if (mapping->page->parked) continue;
    Mapping* const now = mapping->page->current;
    (now->range->home == &heap ? from : beside).push_back(now);
  }
  prepareMoves(heap, at.size());
  if (!beside.empty()) {
    Heap& source = *beside.front()->range->home;
    source.mutex().assertHeld();
    takeOut(source, beside);
  }
  takeOut(heap, from);
  for (Mapping* mapping : at) {
    PhysicalPage& page = *mapping->page;
    if (!page.parked) {
      leaveForRevival(state, heap, *mapping);
      continue;
    }
    mapping->last_use = page.home().last_use;
    heap.completion().noteLeft(mapping->last_use);
    takeFromParked(state, page);
  }
  Block* last = nullptr;
  for (Mapping* mapping : at) last = arrive(state, heap, *mapping, mapping->last_use);
  state.counters.revived += at.size();
  return last;
}

namespace {

bool liesBefore(const Mapping* a, const Mapping* b) {
  return a->range != b->range ? a->range->base < b->range->base : a->unit < b->unit;
}

// The page leaves the free block around it. `at` notes when it was used last.
void leave(State& state, Mapping& at) noexcept {
  Mapping& from = *at.page->current;
  Heap &source = *from.range->home, &heap = *at.range->home;
  source.mutex().assertHeld();
  heap.mutex().assertHeld();
  Block& free = *from.found.in;
  from.last_use = source.completion().epochOf(free.epoch);
  source.punch(from.range->kind, free, from.place(), from.placeEnd());
  source.completion().noteLeft(from.last_use);
  state.table.makeStale(from);
  at.last_use = &heap == &source ? from.last_use : heap.completion().now();
}

}  // namespace

// All leave before the first arrives, the highest of a range first, so that what is below stays the
// same block. Then each arrives in the hole that the search has come to.
void comeBack(State& state, std::vector<Mapping*>& at) noexcept {
  std::ranges::sort(at, [](const Mapping* a, const Mapping* b) {
    return liesBefore(a->page->current, b->page->current);
  });
  AscendingSearch search;
  for (Mapping* mapping : at) {
    Mapping& from = *mapping->page->current;
    from.found.in = search.covering(*from.range, from.place());
  }
  for (std::size_t i = at.size(); i-- > 0;) leave(state, *at[i]);
  std::ranges::sort(at, liesBefore);
  search.beginAnew();
  for (Mapping* mapping : at) {
    Heap& heap = *mapping->range->home;
    heap.mutex().assertHeld();
    Block& hole = *search.covering(*mapping->range, mapping->place());
    search.goOnFrom(*arriveIn(state, heap, hole, *mapping, mapping->last_use));
  }
  state.counters.revived += at.size();
}

// ---- At low water -------------------------------------------------------------------------------

/// At most a sixteenth of a heap's memory is parked at a low water.
static constexpr std::uint64_t kPartParked = 16;

// A page's home is where a low water finds it first. (In a private pool it stays where the page was
// mapped first. The pool's first graph has it there, and the others find it there.) If late pages
// are too many, they are late no longer. A mapping at rest is passed over, as reading its page
// takes long.
void sendHome(State& state, Heap& heap) {
  heap.lowWater().noteReached(heap.busyBytes());
  unpark(state, heap);
  const FreePageScan scan(heap, state.number);
  const bool settles = heap.pool().isDefault();
  std::vector<Mapping*> homes;
  std::uint64_t late = 0;
  for (Mapping* mapping : scan.freeMappings()) {
    if (mapping->at_rest) continue;
    PhysicalPage& page = *mapping->page;
    if (settles && !page.settled) state.table.makeHome(*mapping);
    page.settled |= settles;
    if (page.late) late += mapping->bytes();
    Mapping& home = page.home();
    mapping->at_rest = &home == mapping && !page.late;
    if (&home != mapping && home.accessible && home.range->home == &heap) homes.push_back(&home);
  }
  if (late > heap.reservedBytes() / kPartParked && !without(Mechanism::kFewParked)) {
    for (const Mapping* mapping : scan.freeMappings()) mapping->page->late = false;
    late = 0;
  }
  revive(state, heap, homes);
  if (late > 0) park(state, heap);
}

void park(State& state, Heap& heap, std::uint64_t unparked_for) noexcept try {
  if (without(Mechanism::kParking) || !state.recycles() || !heap.pool().isDefault()) return;
  if (heap.completion().recorded() != 0) return;
  const FreePageScan scan(heap, state.number);
  std::vector<Mapping*> late;
  for (Mapping* mapping : scan.freeMappings()) {
    const PhysicalPage& page = *mapping->page;
    const bool meant = unparked_for == 0 || page.unparked_for == unparked_for;
    if (meant && page.late && page.mayLeave() && mapping->isHome()) late.push_back(mapping);
  }
  std::vector<Mapping*>& parked = state.notes.of(heap).parked;
  parked.reserve(parked.size() + late.size());
  takeOut(heap, late);
  for (Mapping* mapping : late) {
    state.table.makeStale(*mapping);
    mapping->page->parked = true;
    parked.push_back(mapping);
    heap.parked_bytes += mapping->bytes();
  }
} catch (const std::bad_alloc&) {
}

void unpark(State& state, Heap& heap, std::uint64_t miss) {
  if (heap.parked_bytes == 0) return;
  const std::vector<Mapping*> homes = state.notes.of(heap).parked;
  for (const Mapping* home : homes) home->page->unparked_for = miss;
  revive(state, heap, homes);
}

}  // namespace cistern::pages
