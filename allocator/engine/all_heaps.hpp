// How whoever looks at all heaps at once holds them still. Included by the files that do, and by
// nothing else.
#pragma once

#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

// Holds every heap still, in the order in which they were made, and then the caches.
template <class Visit>
void CachingAllocator::withAllHeaps(Visit visit) const CISTERN_NO_TSA {
  const MutexLock lock(settle_mutex_);
  withAllHeapsSettling(Caches::kEmptied, visit);
}

// What may throw comes before the locks: nobody would give them up.
template <class Visit>
void CachingAllocator::withAllHeapsSettling(Caches caches, Visit visit) const CISTERN_NO_TSA {
  auto& [heaps, changes, counters] = all_heaps_;
  heaps_.refresh(heaps, changes);
  counters.clear();
  counters.reserve(heaps.size());
  for (Heap* heap : heaps) heap->mutex().lock();
  {
    const HeldCaches held_still(heaps, caches);
    settled_others_ = held_still.closedOthers();
    had_cached_ = held_still.hadAny();
    for (Heap* heap : heaps) counters.push_back(&heap->counters());
    visit(heaps, counters);
  }
  for (Heap* heap : heaps) heap->mutex().unlock();
}

}  // namespace cistern
