#include "allocator/engine/flusher.hpp"

#include "allocator/base/ablation.hpp"
#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/heap/heap_locks.hpp"

namespace cistern {
namespace {

// Low water came when blocks went back, and nobody has looked after it yet.
bool passedLowWater(Heap& heap) noexcept {
  const MutexLock lock(heap.mutex());
  return heap.lowWater().takePassed(heap.busyBytes());
}

}  // namespace

bool Flusher::flush() noexcept {
  try {
    bool any = false;
    std::vector<Heap*> heaps;
    {
      const MutexLock lock(core_.heaps_mutex);
      any = flushFilled(heaps);
    }
    for (Heap* heap : heaps) {
      if (passedLowWater(*heap)) goHome(*heap);
    }
    return any;
  } catch (const std::bad_alloc&) {
    return false;  // the host is short of memory: what was not looked at stays where it is
  }
}

// All caches are closed at once: to close another thread's costs a system call.
bool Flusher::flushFilled(std::vector<Heap*>& heaps) {
  std::vector<ThreadCache*> filled;
  core_.caches.takeFilled(filled);
  if (filled.empty()) return false;
  for (ThreadCache* cache : filled) heaps.push_back(&cache->heap());
  const HeapLocks locks(core_.heaps_mutex, heaps);
  const HeldCaches held_still(heaps);
  return held_still.hadAny();
}

void Flusher::afterFree(Heap& heap, Heap::Due due) noexcept {
  if (due.mark && driverMayBeCalled()) core_.progress.markFreed(heap);
  if (due.low_water) atLowWater(heap);
}

// A round begins with empty caches, so that it is like the one before. Other threads lose theirs
// only where the program has let go of nearly all that it had, which is once a round at most.
void Flusher::atLowWater(Heap& heap) noexcept {
  if (!without(Mechanism::kFlushAtLowWater)) isNearlyFree(heap) ? void(flush()) : flushMine();
  goHome(heap);
}

void Flusher::flushMine() noexcept {
  try {
    std::vector<ThreadCache*> filled;
    core_.caches.takeFilled(filled);
    for (ThreadCache* cache : filled) {
      const MutexLock lock(cache->heap().mutex());
      cache->isMine() ? cache->flush() : cache->list();
    }
  } catch (const std::bad_alloc&) {
    // The host is short of memory: they stay as they are.
  }
}

void Flusher::goHome(Heap& heap) noexcept {
  try {
    core_.pages.sendHome(heap);
  } catch (const std::bad_alloc&) {
    // The host is short of memory: pages stay where they are.
  }
}

}  // namespace cistern
