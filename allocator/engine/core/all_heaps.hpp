// All heaps of an allocator, held still.
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

}  // namespace cistern
