#include "allocator/engine/pages/placing.hpp"

#include <algorithm>

#include "allocator/base/check.hpp"
#include "allocator/engine/pages/aside.hpp"

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

// Of a range the highest first, so that what is below stays the same block.
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

Block* arrive(Ground& ground, Heap& heap, Mapping& at, std::uint64_t last_use) noexcept {
  ground.table.makeCurrent(at);
  ground.count(*at.page, &heap, at.range->kind);
  return putIn(heap, at, last_use);
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
    heap.completion.noteLeft(mapping->last_use);
    page.aside ? takeFromAside(page) : ground.table.makeStale(*page.current);
  }
  Block* last = nullptr;
  for (Mapping* mapping : at) last = arrive(ground, heap, *mapping, mapping->last_use);
  ground.counters.revived += at.size();
  return last;
}

void comeBack(Ground& ground, Mapping& at) noexcept {
  Mapping& from = *at.page->current;
  Heap &source = *from.range->home, &heap = *at.range->home;
  source.mutex().assertHeld();
  heap.mutex().assertHeld();
  Block& free = *from.range->covering(from.place());
  from.last_use = source.completion().epochOf(free.epoch);
  source.punch(from.range->kind, free, from.place(), from.placeEnd());
  source.completion().noteLeft(from.last_use);
  ground.table.makeStale(from);
  arrive(ground, heap, at, &heap == &source ? from.last_use : heap.completion().now());
  ++ground.counters.revived;
}

}  // namespace cistern::pages
