#include "allocator/engine/pages/comeback.hpp"

#include "allocator/engine/pages/placing.hpp"

namespace cistern::pages {

bool Comeback::want(const PageRange& range, Address from, Address to, std::vector<Mapping*>& away) {
  const std::uint32_t end = range.unitAt(to + kUnit - 1);
  for (std::uint32_t unit = range.unitAt(from); unit < end;) {
    Mapping* const mapping = range.slots[unit];
    if (mapping == nullptr || !mapping->accessible || mapping->page->current == nullptr)
      return false;
    const auto [place, fresh] = places_.try_emplace(mapping->page, mapping);
    if (place->second != mapping) return false;
    if (!mapping->isCurrent()) away.push_back(mapping);
    if (fresh && !mapping->isCurrent()) mappings_.push_back(mapping);
    unit = mapping->end_unit;
  }
  return true;
}

void Comeback::prepare() {
  for (const Mapping* to : mappings_) {
    for (Heap* heap : {to->range->home, to->page->current->range->home}) {
      heap->mutex().assertHeld();
      prepareMoves(*heap, mappings_.size());
    }
  }
}

void Comeback::bring(Ground& ground) noexcept {
  for (Mapping* to : mappings_) {
    Mapping& from = *to->page->current;
    Heap &source = *from.range->home, &heap = *to->range->home;
    source.mutex().assertHeld();
    heap.mutex().assertHeld();
    Block& free = *from.range->covering(from.place());
    from.last_use = source.completion().epochOf(free.epoch);
    source.punch(from.range->kind, free, from.place(), from.placeEnd());
    ground.table.makeStale(from);
    arrive(ground, heap, *to, &heap == &source ? from.last_use : heap.completion().now());
    ++ground.counters.revived;
  }
}

}  // namespace cistern::pages
