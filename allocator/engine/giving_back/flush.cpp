#include "allocator/engine/giving_back/flush.hpp"

#include <new>

#include "allocator/base/ablation.hpp"
#include "allocator/base/process.hpp"
#include "allocator/engine/cache/held_caches.hpp"

namespace cistern {
namespace {

// A flush brought the heap to low water, and its pages have not been sent home yet.
bool passedLowWater(Heap& heap) noexcept {
  const MutexLock lock(heap.mutex());
  return heap.lowWater().takePassed(heap.busyBytes());
}

// Whether hardly any of its memory is in use, or kept by a thread.
bool isNearlyFree(Heap& heap) noexcept {
  const MutexLock lock(heap.mutex());
  return heap.busyBytes() < heap.reservedBytes() / 8;
}

void flushMine(Engine& engine) noexcept {
  engine.caches.takeFilled([](ThreadCache& cache) {
    const MutexLock lock(cache.heap().mutex());
    cache.isMine() ? cache.flush() : cache.list();
  });
}

}  // namespace

// All caches are closed at once: to close another thread's costs a system call.
bool flushCaches(Engine& engine) noexcept {
  std::vector<Heap*> heaps;
  bool any = false;
  {
    const MutexLock lock(engine.heaps_mutex);
    engine.caches.takeFilled([&](ThreadCache& cache) {
      try {
        heaps.push_back(&cache.heap());
      } catch (const std::bad_alloc&) {
        cache.list();  // another time
      }
    });
    if (heaps.empty()) return false;
    const HeapLocks locks(engine.heaps_mutex, heaps);
    any = HeldCaches(heaps).hadAny();
  }
  for (Heap* heap : heaps) {
    if (passedLowWater(*heap)) engine.pages.sendHome(*heap);
  }
  return any;
}

void afterFree(Engine& engine, Heap& heap, Heap::Due due) noexcept {
  if (due.mark && driverMayBeCalled()) engine.progress.markFreed(heap);
  if (due.low_water) atLowWater(engine, heap);
}

// A round begins with empty caches, so that it is like the one before. Other threads lose theirs
// only where the program has let go of nearly all that it had, which is once a round at most.
void atLowWater(Engine& engine, Heap& heap) noexcept {
  if (!without(Mechanism::kFlushAtLowWater))
    isNearlyFree(heap) ? void(flushCaches(engine)) : flushMine(engine);
  engine.pages.sendHome(heap);
}

}  // namespace cistern
