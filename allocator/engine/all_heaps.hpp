// How whoever looks at all heaps at once holds them still. Included by the files that do, and by
// nothing else.
#pragma once

#include <bit>

#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

// Holds every heap still, in the order in which they were made, and then the caches. What may throw
// comes before the locks: nobody would give them up.
template <class Visit>
void CachingAllocator::withAllHeaps(Visit visit) const CISTERN_NO_TSA {
  const MutexLock lock(settle_mutex_);
  const std::vector<Heap*> heaps = heaps_.all();
  AllCounters& counters = all_heaps_.counters;
  counters.resting = nullptr;
  counters.clear();
  counters.reserve(heaps.size());
  for (Heap* heap : heaps) heap->mutex().lock();
  {
    const HeldCaches held_still(heaps);
    for (Heap* heap : heaps) counters.push_back(&heap->counters());
    visit(heaps, counters);
  }
  for (Heap* heap : heaps) heap->mutex().unlock();
}

// The same for who needs counts alone, at the cost of the heaps that are active. Those that wake
// while others are locked are locked too: at the end nobody is in the middle of a change.
template <class Visit>
void CachingAllocator::withCounters(Caches caches, Visit visit) const CISTERN_NO_TSA {
  while (!tryWithCounters(caches, visit)) {
  }
}

template <class Visit>
bool CachingAllocator::tryWithCounters(Caches caches, Visit visit) const CISTERN_NO_TSA {
  constexpr std::size_t kMore = 64;  // heaps that are made meanwhile
  auto& [heaps, counters, resting] = all_heaps_;
  const std::size_t room = std::bit_ceil(heaps_.active().count() + kMore);
  heaps.clear();
  heaps.reserve(room);
  counters.clear();
  counters.reserve(heaps.capacity());
  bool all = true;
  {
    HeldCaches held_still({}, caches);
    std::size_t held = 0;
    while (heaps_.active().appendNew(heaps, resting)) {
      all = held != heaps.size();
      if (!all) break;  // there is no room for more
      for (; held < heaps.size(); ++held) heaps[held]->mutex().lock();
      held_still.extend(heaps);
    }
    if (all) {
      settled_others_ = held_still.closedOthers();
      had_cached_ = held_still.hadAny();
      counters.resting = resting.heaps != 0 ? &resting.counters : nullptr;
      for (Heap* heap : heaps) counters.push_back(&heap->counters());
      visit(heaps, counters);
      if (heaps.size() > ActiveHeaps::kFew) {
        for (Heap* heap : heaps) heap->restIfUnchanged();
      }
    }
  }
  for (Heap* heap : heaps) heap->mutex().unlock();
  return all;
}

}  // namespace cistern
