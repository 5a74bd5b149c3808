// What threads keep goes back to the heaps, and what lies free to the device: when memory is short,
// at low water, and on emptyCache.
#include "allocator/base/ablation.hpp"
#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/caching_allocator.hpp"
#include "allocator/engine/heap_locks.hpp"

namespace cistern {

// A request that needs more memory than there is takes what the threads keep first. True if there
// was any. Caches that may hold something are looked at, and no others.
bool CachingAllocator::flushCaches() noexcept {
  try {
    bool any = false;
    std::vector<Heap*> heaps;
    {
      const MutexLock lock(heaps_mutex_);
      any = flushFilled(heaps);
    }
    if (!pages_) return any;
    for (Heap* heap : heaps) {
      if (isAtLowWater(*heap)) goHome(*heap);
    }
    return any;
  } catch (const std::bad_alloc&) {
    return false;  // the host is short of memory: what was not looked at stays where it is
  }
}

// All caches are closed at once: to close another thread's costs a system call.
bool CachingAllocator::flushFilled(std::vector<Heap*>& heaps) {
  std::vector<ThreadCache*> filled;
  caches_.takeFilled(filled);
  if (filled.empty()) return false;
  for (ThreadCache* cache : filled) heaps.push_back(&cache->heap());
  const HeapLocks locks(heaps_mutex_, heaps);
  return HeldCaches(heaps).hadAny();
}

// Low water came when blocks went back, and nobody has looked after it yet.
bool CachingAllocator::isAtLowWater(Heap& heap) noexcept {
  const MutexLock lock(heap.mutex());
  return heap.lowWater().takePassed(heap.busyBytes());
}

// A round begins with empty caches, so that it is like the one before. Other threads lose theirs
// only where the program has let go of nearly all that it had, which is once a round at most.
void CachingAllocator::atLowWater(Heap& heap) noexcept {
  if (!without(Mechanism::kFlushAtLowWater)) isNearlyFree(heap) ? void(flushCaches()) : flushMine();
  goHome(heap);
}

void CachingAllocator::flushMine() noexcept {
  try {
    std::vector<ThreadCache*> filled;
    caches_.takeFilled(filled);
    for (ThreadCache* cache : filled) {
      const MutexLock lock(cache->heap().mutex());
      cache->isMine() ? cache->flush() : cache->list();
    }
  } catch (const std::bad_alloc&) {
    // The host is short of memory: they stay as they are.
  }
}

void CachingAllocator::goHome(Heap& heap) noexcept {
  try {
    (void)pages_->sendHome(heap);
  } catch (const std::bad_alloc&) {
    // The host is short of memory: pages stay where they are.
  }
}

// ---- To the device -----------------------------------------------------------------------------

void CachingAllocator::emptyCache() {
  flushCaches();
  (void)hooks_.tidy(Tidying::kEmptyCache);
  pollPending();
  pending_.waitForStuck();
  if (pages_) pages_->emptyCache(heaps_.all());
  segment_backing_.releaseIdle(heaps_.all());
}

// The heaps whose idle segments may go to make room in a pool: its own, and nobody's in particular.
std::vector<Heap*> CachingAllocator::releasableFor(const Pool& pool) const {
  std::vector<Heap*> heaps = heaps_.all();
  std::erase_if(heaps, [&](const Heap* heap) { return !heap->pool().givesTo(pool, false); });
  return heaps;
}

// Gives back what cannot serve the request as it lies, but makes room for what would: idle
// segments, or, for a segment, pages. True when there was any.
bool CachingAllocator::releaseFor(const Request& request) {
  std::vector<Heap*> heaps = releasableFor(*request.pool);
  if (segment_backing_.releaseIdle(heaps) > 0) return true;
  if (pages_ == nullptr || onPages(request)) return false;
  std::erase_if(heaps, [](const Heap* heap) { return !heap->onPages(); });
  return pages_->release(heaps, request.pool->rules().segmentFor(request)) > 0;
}

}  // namespace cistern
