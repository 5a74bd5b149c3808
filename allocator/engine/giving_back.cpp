#include "allocator/engine/giving_back.hpp"

#include <new>

#include "allocator/base/ablation.hpp"
#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/sharing/imports.hpp"
#include "allocator/engine/statistics/accounting.hpp"

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

bool holdsNothing(Engine& engine, Heap& heap) {
  {
    const MutexLock lock(heap.mutex());  // most have memory: the device is not asked for those
    if (heap.reservedBytes() != 0) return false;
  }
  heap.gone() ? engine.progress.refresh(heap) : engine.progress.refreshByEvent(heap);
  const MutexLock lock(heap.mutex());
  return heap.holdsNothing();
}

// ---- To the device ------------------------------------------------------------------------------

// The pool's own heaps, and those that are nobody's in particular.
static std::vector<Heap*> giversTo(Engine& engine, const Pool& pool) {
  std::vector<Heap*> heaps = engine.heaps.all();
  std::erase_if(heaps, [&](const Heap* heap) { return !heap->pool().givesTo(pool, false); });
  return heaps;
}

// Blocks that threads keep, and blocks that a stream is stuck with, come to the heaps first.
void emptyCache(Engine& engine, const Pool* only, bool unowned) {
  flushCaches(engine);
  engine.imports->retry();
  if (only == nullptr) (void)engine.hooks.tidy(Tidying::kEmptyCache);
  engine.pending.poll();
  if (engine.pending.waiting() > 0) {
    const MutexLock lock(engine.waiting_mutex);
    (void)engine.pending.waitForStuck();
  }
  const InHand in_hand(engine);
  const MutexLock pressure(engine.pressure_mutex);
  const std::vector<Heap*> heaps = only      ? only->heaps()
                                   : unowned ? giversTo(engine, engine.default_pool)
                                             : engine.heaps.all();
  engine.pages.emptyCache(heaps);
  (void)engine.segments.release(heaps, UINT64_MAX);
}

void trim(Engine& engine, const Pool& pool, std::uint64_t bytes) {
  flushCaches(engine);
  engine.pending.poll();
  const InHand in_hand(engine);
  const MutexLock pressure(engine.pressure_mutex);
  std::uint64_t reserved = 0;
  for (Heap* heap : pool.heaps()) {
    const MutexLock lock(heap->mutex());
    reserved += heap->reservedBytes();
  }
  if (reserved > bytes) (void)pool.backing().release(pool.heaps(), reserved - bytes);
}

// Free memory at the ends of a window need not be made anew. So the least that is lacking is not a
// whole segment or page.
bool giveBackFor(Engine& engine, const Request& request, Givers givers) {
  const std::vector<Heap*> heaps =
      givers == Givers::kAll ? engine.heaps.all() : giversTo(engine, *request.pool);
  const std::uint64_t most = engine.limit.limit() + freeBytes(heaps);
  if (engine.limit.reserved() + request.rounded() > most) return false;
  const MutexLock pressure(engine.pressure_mutex);
  const std::uint64_t pages = engine.pages.release(heaps, UINT64_MAX);
  return engine.segments.release(heaps, UINT64_MAX) + pages > 0;
}

bool makeRoomFor(Engine& engine, const Request& request) {
  const std::vector<Heap*> heaps = giversTo(engine, *request.pool);
  if (engine.segments.release(heaps, UINT64_MAX) > 0) return true;
  const bool move = engine.options.recycle != Recycle::kOff && engine.options.reusesAcrossStreams();
  if (request.pool->onPages() && move) return false;
  return engine.pages.release(heaps, request.pool->rules().segmentFor(request)) > 0;
}

void collectGarbage(Engine& engine) {
  const double part = engine.options.garbage_collection_threshold;
  if (part <= 0) return;
  const auto threshold = std::uint64_t(part * double(engine.limit.limit()));
  if (engine.limit.reserved() <= threshold) return;
  const MutexLock pressure(engine.pressure_mutex);
  engine.pages.collectGarbage(engine.heaps.all(), threshold);
  engine.segments.collectGarbage(engine.heaps.all(), threshold);
}

}  // namespace cistern
