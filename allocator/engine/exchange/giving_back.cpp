#include <new>

#include "allocator/base/ablation.hpp"
#include "allocator/base/process.hpp"
#include "allocator/engine/backing/imports.hpp"
#include "allocator/engine/cache/thread_cache.hpp"
#include "allocator/engine/exchange/exchange.hpp"

namespace cistern {

// ---- From caches to heaps -----------------------------------------------------------------------

namespace {

// A flush may have brought the heap to low water, where it held the heap's lock.
bool isAtLowWater(Heap& heap) noexcept {
  const MutexLock lock(heap.mutex());
  return heap.lowWater().isDue(heap.busyBytes());
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
    if (isAtLowWater(*heap)) engine.pages.sendHome(*heap);
  }
  return any;
}

// A round begins with empty caches, so that it is like the one before. Other threads lose theirs
// only where the program has let go of nearly all that it had, which is once a round at most.
void atLowWater(Engine& engine, Heap& heap) noexcept {
  if (!without(Mechanism::kFlushAtLowWater))
    isNearlyFree(heap) ? void(flushCaches(engine)) : flushMine(engine);
  engine.pages.sendHome(heap);
}

void afterFree(Engine& engine, Heap& heap, Heap::Due due) noexcept {
  if (due.mark && driverMayBeCalled()) engine.progress.markFreed(heap);
  if (due.low_water) atLowWater(engine, heap);
}

// ---- From heaps to the device -------------------------------------------------------------------

// The pool's own heaps, and those that are nobody's in particular: mayGive has the rule.
// HeapTable::reaches states the same rule for searches.
static std::vector<Heap*> giversTo(Engine& engine, const Pool& pool, MemoryKind kind) {
  return engine.heaps.allWhere([&](const Heap& heap) { return mayGive(heap, pool, kind, false); });
}

// Whatever their pages are: nothing moves to another heap here.
static std::vector<Heap*> unownedHeaps(Engine& engine) {
  return engine.heaps.allWhere(
      [&](const Heap& heap) { return heap.pool().givesTo(engine.default_pool, false); });
}

void emptyCache(Engine& engine, const Pool* only, bool unowned) {
  if (only == nullptr) (void)engine.hooks.tidy(Tidying::kEmptyCache);
  emptyCacheUntidied(engine, only, unowned);
}

// Blocks that threads keep, and blocks that a stream is stuck with, come to the heaps first.
void emptyCacheUntidied(Engine& engine, const Pool* only, bool unowned) {
  flushCaches(engine);
  engine.imports->retry();
  engine.pending.poll();
  if (engine.pending.waiting() > 0) {
    const MutexLock pressure(engine.pressure_mutex);
    (void)engine.pending.waitForStuck();
  }
  const InHand in_hand(engine);
  const MutexLock pressure(engine.pressure_mutex);
  const std::vector<Heap*> heaps = only      ? only->heaps()
                                   : unowned ? unownedHeaps(engine)
                                             : engine.heaps.all();
  engine.pages.emptyCache(heaps);
  (void)engine.segments.release(heaps, UINT64_MAX);
}

// A heap that is new has nothing that is old. A tick passes, so that what is freed from now on is
// younger than what is seen here.
void giveBackUnused(Engine& engine, UnusedSince& last) {
  flushCaches(engine);
  engine.pending.poll();
  const InHand in_hand(engine);
  const MutexLock pressure(engine.pressure_mutex);
  const std::vector<Heap*> heaps = unownedHeaps(engine);
  for (Heap* heap : heaps) {
    if (!heap->onPages()) continue;
    std::uint64_t& epoch = last.epochs[heap];
    epoch = engine.pages.releaseUnused(*heap, epoch);
  }
  const std::uint64_t until = std::exchange(last.tick, engine.tick.fetch_add(1) + 1);
  (void)engine.segments.release(heaps, UINT64_MAX, until);
}

std::uint64_t reservedBytes(const std::vector<Heap*>& heaps) {
  std::uint64_t reserved = 0;
  for (const Heap* heap : heaps) {
    const MutexLock lock(heap->mutex());
    reserved += heap->reservedBytes();
  }
  return reserved;
}

void trim(Engine& engine, const std::vector<Heap*>& heaps, std::uint64_t bytes) {
  flushCaches(engine);
  engine.pending.poll();
  const InHand in_hand(engine);
  const MutexLock pressure(engine.pressure_mutex);
  const std::uint64_t reserved = reservedBytes(heaps);
  if (reserved <= bytes) return;
  const std::uint64_t most = reserved - bytes, pages = engine.pages.release(heaps, most);
  if (pages < most) (void)engine.segments.release(heaps, most - pages);
}

// Free memory at the ends of a window need not be given back and made again. So compare with the
// request's own size, not with a whole segment or page.
bool giveBackFor(Engine& engine, const Request& request, Givers givers) {
  const MemoryKind kind = memoryFor(request);
  const bool device = isOfDevice(kind);
  std::vector<Heap*> heaps =
      givers == Givers::kAll ? engine.heaps.with(kind) : giversTo(engine, *request.pool, kind);
  if (device) {
    const std::vector<Heap*> mixed = engine.heaps.with(MemoryKind::kOverflow);
    heaps.insert(heaps.end(), mixed.begin(), mixed.end());  // they may have pages of the device
    const std::uint64_t most = engine.limit.limit() + freeDeviceBytes(heaps);
    if (engine.limit.reserved() + request.rounded() > most) return false;
  }
  const std::uint64_t pages = engine.pages.release(heaps, UINT64_MAX, device);
  return engine.segments.release(heaps, UINT64_MAX) + pages > 0;
}

bool makeRoomFor(Engine& engine, const Request& request) {
  const std::vector<Heap*> heaps = giversTo(engine, *request.pool, memoryFor(request));
  if (engine.segments.release(heaps, UINT64_MAX) > 0) return true;
  const bool move = engine.options.recycle != Recycle::kOff && engine.options.reusesAcrossStreams();
  if (request.pool->onPages() && move) return false;
  return engine.pages.release(heaps, request.pool->rules().segmentFor(request)) > 0;
}

// If another thread gives memory back, or waits for some, that is for this request too.
void collectGarbage(Engine& engine) {
  const double part = engine.options.garbage_collection_threshold;
  if (part <= 0) return;
  const auto threshold = std::uint64_t(part * double(engine.limit.limit()));
  if (engine.limit.reserved() <= threshold) return;
  if (!engine.pressure_mutex.try_lock()) return;
  const MutexUnlock pressure(engine.pressure_mutex);
  const std::uint64_t pages =
      engine.pages.collectGarbage(engine.heaps.with(MemoryKind::kPages), threshold);
  // With hooks, pages that go still count until they have gone.
  const std::uint64_t going = engine.memory_hooks.on() ? pages : 0;
  engine.segments.collectGarbage(engine.heaps.all(), threshold + going);
}

}  // namespace cistern
