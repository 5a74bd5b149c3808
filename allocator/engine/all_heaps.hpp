// How whoever looks at all heaps at once holds them still. Included by the files that do, and by
// nothing else.
#pragma once

#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

// Holds every heap still, in the order in which they were made, and then the caches. What may throw
// comes before the locks: nobody would give them up.
template <class Visit>
void CachingAllocator::withAllHeaps(Visit visit) const CISTERN_NO_TSA {
  const MutexLock lock(heaps_mutex_);
  const std::vector<Heap*> heaps = heaps_.all();
  for (Heap* heap : heaps) heap->mutex().lock();
  {
    const HeldCaches held_still(heaps);
    visit(heaps);
  }
  for (Heap* heap : heaps) heap->mutex().unlock();
}

}  // namespace cistern
