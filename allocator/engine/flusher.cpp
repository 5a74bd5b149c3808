#include "allocator/engine/flusher.hpp"

#include <algorithm>
#include <utility>

#include "allocator/base/ablation.hpp"
#include "allocator/engine/cache/held_caches.hpp"

namespace cistern {
namespace {

// Low water came when blocks went back, and nobody has looked after it yet.
bool passedLowWater(Heap& heap) noexcept {
  const MutexLock lock(heap.mutex());
  const bool low = heap.pages_moved && heap.busyBytes() <= heap.low_water.mark();
  return std::exchange(heap.low_water_passed, false) && low;
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

// Their heaps are locked in the order in which they were made, and all caches are closed at once:
// to close another thread's costs a system call.
bool Flusher::flushFilled(std::vector<Heap*>& heaps) CISTERN_NO_TSA {
  std::vector<ThreadCache*> filled;
  core_.caches.takeFilled(filled);
  if (filled.empty()) return false;
  for (ThreadCache* cache : filled) heaps.push_back(&cache->heap());
  std::ranges::sort(heaps, {}, [](const Heap* heap) { return heap->offering.number; });
  heaps.erase(std::unique(heaps.begin(), heaps.end()), heaps.end());
  for (Heap* heap : heaps) heap->mutex().lock();
  bool any = false;
  {
    const HeldCaches held_still(heaps);
    any = held_still.hadAny();
  }
  for (Heap* heap : heaps) heap->mutex().unlock();
  return any;
}

void Flusher::afterFree(Heap& heap, Heap::Due due) noexcept {
  if (due.mark && driverMayBeCalled()) core_.progress.markFreed(heap);
  if (due.low_water) atLowWater(heap);
}

// A round begins with empty caches, so that it is like the one before. Other threads lose theirs
// only where the program has let go of nearly all that it had, which is once a round at most.
void Flusher::atLowWater(Heap& heap) noexcept {
  if (!without(Mechanism::kFlushAtLowWater)) heap.nearlyFree() ? void(flush()) : flushMine();
  goHome(heap);
}

void Flusher::flushMine() noexcept CISTERN_NO_TSA {
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
