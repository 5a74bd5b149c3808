// How whoever looks at all heaps at once holds them still. Included by the files that do, and by
// nothing else.
#pragma once

#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/caching_allocator.hpp"
#include "allocator/engine/heap_locks.hpp"

namespace cistern {

// Holds every heap still, and then the caches.
template <class Visit>
void CachingAllocator::withAllHeaps(Visit visit) const {
  const MutexLock lock(heaps_mutex_);
  std::vector<Heap*> heaps = heaps_.all();
  const HeapLocks locks(heaps_mutex_, heaps);
  const HeldCaches held_still(heaps);
  visit(heaps);
}

}  // namespace cistern
