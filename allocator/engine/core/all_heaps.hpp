// All heaps of an allocator, held still; and who is told of what happens to them.
#pragma once

#include <vector>

#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/core/core.hpp"

namespace cistern {

/// Calls visit(const std::vector<Heap*>&) with the locks of all heaps held and the threads' caches
/// empty. The heaps are in the order in which they were made. Throws std::bad_alloc.
template <class Visit>
void withAllHeaps(Core& core, Visit visit) {
  const MutexLock lock(core.heaps_mutex);
  std::vector<Heap*> heaps = core.heaps.all();
  const HeapLocks locks(core.heaps_mutex, heaps);
  const HeldCaches held_still(heaps);
  visit(heaps);
}

/// From now on the core's observer is told of each block and of all memory, or nobody. Pre: the
/// locks of all heaps and of their table are held, and the threads' caches are empty.
inline void observe(Core& core, const std::vector<Heap*>& heaps, bool on)
    CISTERN_REQUIRES(core.heaps.mutex()) {
  Observer* const observer = on ? core.observer.get() : nullptr;
  core.heaps.observe(observer);
  for (Heap* heap : heaps) {
    heap->mutex().assertHeld();
    heap->observe(observer);
    for (ThreadCache* cache : heap->caches())
      on ? cache->closeRemoteFrees() : cache->openRemoteFrees();
  }
  core.totals.refuseHits(on);
  core.log.listen(observer);
  core.observed.store(on, std::memory_order_relaxed);
}

}  // namespace cistern
