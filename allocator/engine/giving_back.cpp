#include "allocator/engine/giving_back.hpp"

#include <new>

#include "allocator/base/ablation.hpp"
#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/heap/heap_locks.hpp"

namespace cistern {
namespace {

// Where the host is short of memory, what was not looked at stays where it is.
void goHome(Core& core, Heap& heap) noexcept try {
  core.pages.sendHome(heap);
} catch (const std::bad_alloc&) {
}

// A flush brought the heap to low water, and its pages have not been sent home yet.
bool passedLowWater(Heap& heap) noexcept {
  const MutexLock lock(heap.mutex());
  return heap.lowWater().takePassed(heap.busyBytes());
}

void flushMine(Core& core) noexcept {
  core.caches.takeFilled([](ThreadCache& cache) {
    const MutexLock lock(cache.heap().mutex());
    cache.owner().isMine() ? cache.flush() : cache.list();
  });
}

}  // namespace

// All caches are closed at once: to close another thread's costs a system call.
bool flushCaches(Core& core) noexcept {
  std::vector<Heap*> heaps;
  bool any = false;
  {
    const MutexLock lock(core.heaps_mutex);
    core.caches.takeFilled([&](ThreadCache& cache) {
      try {
        heaps.push_back(&cache.heap());
      } catch (const std::bad_alloc&) {
        cache.list();  // another time
      }
    });
    if (heaps.empty()) return false;
    const HeapLocks locks(core.heaps_mutex, heaps);
    any = HeldCaches(heaps).hadAny();
  }
  for (Heap* heap : heaps) {
    if (passedLowWater(*heap)) goHome(core, *heap);
  }
  return any;
}

void afterFree(Core& core, Heap& heap, Heap::Due due) noexcept {
  if (due.mark && driverMayBeCalled()) core.progress.markFreed(heap);
  if (due.low_water) atLowWater(core, heap);
}

// A round begins with empty caches, so that it is like the one before. Other threads lose theirs
// only where the program has let go of nearly all that it had, which is once a round at most.
void atLowWater(Core& core, Heap& heap) noexcept {
  if (!without(Mechanism::kFlushAtLowWater))
    isNearlyFree(heap) ? void(flushCaches(core)) : flushMine(core);
  goHome(core, heap);
}

bool holdsNothing(Core& core, Heap& heap) {
  const auto empty = [&]() CISTERN_REQUIRES(heap.mutex()) {
    return heap.counts().reservedBytes() == 0 && heap.busyBytes() == 0 && !heap.leaving().any();
  };
  {
    const MutexLock lock(heap.mutex());  // most hold something: the device is not asked for those
    if (!empty()) return false;
  }
  core.progress.refreshByEvent(heap);
  {
    const MutexLock lock(heap.mutex());
    if (!empty() || heap.completion().isAsked()) return false;
  }
  return heap.backing().forgets(heap);
}

// ---- To the device ------------------------------------------------------------------------------

void emptyCache(Engine& engine) {
  flushCaches(engine);
  (void)engine.hooks.tidy(Tidying::kEmptyCache);
  engine.pending.poll();
  engine.pending.waitForStuck();
  engine.pages.emptyCache(engine.heaps.all());
  engine.segments.emptyCache(engine.heaps.all());
}

void emptyCache(Engine& engine, const Pool& pool) {
  flushCaches(engine);
  engine.pending.poll();
  engine.pending.waitForStuck();
  pool.backing().emptyCache(engine.heapsOf(pool));
}

void trim(Engine& engine, const Pool& pool, std::uint64_t bytes) {
  flushCaches(engine);
  engine.pending.poll();
  const std::vector<Heap*> heaps = engine.heapsOf(pool);
  std::uint64_t held = 0;
  for (Heap* heap : heaps) {
    const MutexLock lock(heap->mutex());
    held += heap->counts().reservedBytes();
  }
  if (held > bytes) (void)pool.backing().release(heaps, held - bytes);
}

// Of the pool's own heaps, and of those that are nobody's in particular.
bool makeRoomFor(Core& core, const Request& request) {
  std::vector<Heap*> heaps = core.heaps.all();
  std::erase_if(heaps,
                [&](const Heap* heap) { return !heap->pool().givesTo(*request.pool, false); });
  if (core.segments.release(heaps, UINT64_MAX) > 0) return true;
  if (request.pool->onPages()) return false;
  return core.pages.release(heaps, request.pool->rules().segmentFor(request)) > 0;
}

void collectGarbage(Core& core) {
  const double part = core.options.garbage_collection_threshold;
  if (part <= 0) return;
  const auto threshold = std::uint64_t(part * double(core.limit.limit()));
  core.pages.collectGarbage(core.heaps.all(), threshold);
  core.segments.collectGarbage(core.heaps.all(), threshold);
}

}  // namespace cistern
