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

namespace {

bool liesBefore(const Mapping* a, const Mapping* b) {
  return a->range != b->range ? a->range->base < b->range->base : a->unit < b->unit;
}

// In the order of where the pages are now.
void sortByPage(std::vector<Mapping*>& at) {
  std::ranges::sort(at, [](const Mapping* a, const Mapping* b) {
    return liesBefore(a->page->current, b->page->current);
  });
}

// Each page leaves the free block around it, the highest of a range first, so that what is below
// stays the same block. Pre: in the order of where they are now.
void punch(const std::vector<Mapping*>& at) noexcept {
  for (std::size_t i = at.size(); i-- > 0;) {
    const Mapping& from = *at[i]->page->current;
    Heap& source = *from.range->home;
    source.mutex().assertHeld();
    source.punch(from.range->kind, *from.found.in, from.place(), from.placeEnd());
  }
}

}  // namespace

void reserve(Heap& heap, std::vector<Mapping*>& mappings) {
  sortByPage(mappings);
  prepareMoves(heap, mappings.size());
  punch(mappings);
  for (const Mapping* mapping : mappings) heap.layout(mapping->range->kind).reserveFill();
}

Block* putIn(Heap& heap, const Mapping& mapping, std::uint64_t last_use) noexcept {
  const PageRange& range = *mapping.range;
  return heap.fill(range.kind, holeAt(heap, range, mapping.place()), mapping.place(),
                   mapping.placeEnd(), last_use);
}

namespace {

// `at` notes when it was used last: in another heap, until now.
void leave(State& state, const std::vector<Mapping*>& at) noexcept {
  for (Mapping* mapping : at) {
    Mapping& from = *mapping->page->current;
    Heap &source = *from.range->home, &heap = *mapping->range->home;
    source.mutex().assertHeld();
    heap.mutex().assertHeld();
    source.completion().noteLeft(from.last_use);
    state.table.makeStale(from);
    mapping->last_use = &heap == &source ? from.last_use : heap.completion().now();
  }
}

Block* arrive(State& state, Block& hole, Mapping& at) noexcept {
  Heap& heap = *at.range->home;
  heap.mutex().assertHeld();
  state.table.makeCurrent(at, MappingTable::Device::kNotCalled);
  state.count(*at.page, &heap, at.range->kind);
  ++state.counters.revived;
  return heap.fill(at.range->kind, hole, at.place(), at.placeEnd(), at.last_use);
}

}  // namespace

// All leave before the first arrives: what arrives may merge the blocks that others leave.
Block* revive(State& state, Heap& heap, const std::vector<Mapping*>& at) {
  prepareMoves(heap, at.size());
  for (const Mapping* mapping : at) {
    Heap& source = *mapping->page->current->range->home;
    source.mutex().assertHeld();
    if (&source != &heap) prepareMoves(source, at.size());
  }
  std::vector<Mapping*> sorted = at;
  sortByPage(sorted);
  punch(sorted);
  leave(state, at);
  Block* last = nullptr;
  for (Mapping* mapping : at)
    last = arrive(state, holeAt(heap, *mapping->range, mapping->place()), *mapping);
  return last;
}

// As revive(), with one search for all of them.
void comeBack(State& state, std::vector<Mapping*>& at) noexcept {
  sortByPage(at);
  AscendingSearch search;
  for (const Mapping* mapping : at) {
    Mapping& from = *mapping->page->current;
    from.range->home->mutex().assertHeld();
    from.found.in = search.covering(*from.range, from.place());
    from.last_use = from.range->home->completion().epochOf(from.found.in->epoch);
  }
  punch(at);
  leave(state, at);
  std::ranges::sort(at, liesBefore);
  search.beginAnew();
  for (Mapping* mapping : at) {
    Block& hole = *search.covering(*mapping->range, mapping->place());
    search.goOnFrom(*arrive(state, hole, *mapping));
  }
}

// ---- At low water -------------------------------------------------------------------------------

// A page's home is where a low water finds it first. (In a private pool it stays where the page was
// mapped first. The pool's first graph has it there, and the others find it there.) A mapping at
// rest is passed over, as reading its page takes long.
void sendHome(State& state, Heap& heap) {
  heap.lowWater().noteReached(heap.busyBytes());
  if (heap.rounds().frozen()) return;
  const FreePageScan scan(heap, state.number);
  const bool gives_homes = heap.pool().isDefault();
  std::vector<Mapping*> homes;
  for (Mapping* mapping : scan.freeMappings()) {
    if (mapping->at_rest) continue;
    PhysicalPage& page = *mapping->page;
    if (gives_homes && !page.has_home) state.table.makeHome(*mapping);
    page.has_home |= gives_homes;
    Mapping& home = page.home();
    mapping->at_rest = &home == mapping;
    if (&home != mapping && home.accessible && home.range->home == &heap) homes.push_back(&home);
  }
  revive(state, heap, homes);
}

}  // namespace cistern::pages
