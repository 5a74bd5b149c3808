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
  state.table.makeCurrent(at, MappingTable::Device::kNotCalled);
  state.count(*at.page, &heap, at.range->kind);
  return heap.fill(at.range->kind, hole, at.place(), at.placeEnd(), last_use);
}

Block* arrive(State& state, Heap& heap, Mapping& at, std::uint64_t last_use) noexcept {
  return arriveIn(state, heap, holeAt(heap, *at.range, at.place()), at, last_use);
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
  for (Mapping* mapping : at) leaveForRevival(state, heap, *mapping);
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

// A page's home is where a low water finds it first. (In a private pool it stays where the page was
// mapped first. The pool's first graph has it there, and the others find it there.) A mapping at
// rest is passed over, as reading its page takes long.
void sendHome(State& state, Heap& heap) {
  heap.lowWater().noteReached(heap.busyBytes());
  if (heap.rounds().frozen()) return;
  const FreePageScan scan(heap, state.number);
  const bool settles = heap.pool().isDefault();
  std::vector<Mapping*> homes;
  for (Mapping* mapping : scan.freeMappings()) {
    if (mapping->at_rest) continue;
    PhysicalPage& page = *mapping->page;
    if (settles && !page.settled) state.table.makeHome(*mapping);
    page.settled |= settles;
    Mapping& home = page.home();
    mapping->at_rest = &home == mapping;
    if (&home != mapping && home.accessible && home.range->home == &heap) homes.push_back(&home);
  }
  revive(state, heap, homes);
}

}  // namespace cistern::pages
