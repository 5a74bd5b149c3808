#include "allocator/engine/giving_back.hpp"

namespace cistern {

void GivingBack::emptyCache() {
  flusher_.flush();
  (void)core_.hooks.tidy(Tidying::kEmptyCache);
  cross_stream_.pending().poll();
  cross_stream_.pending().waitForStuck();
  core_.pages.emptyCache(core_.heaps.all());
  core_.segments.emptyCache(core_.heaps.all());
}

void GivingBack::emptyCache(const Pool& pool) {
  flusher_.flush();
  cross_stream_.pending().poll();
  cross_stream_.pending().waitForStuck();
  pool.backing().emptyCache(core_.heapsOf(pool));
}

void GivingBack::trim(const Pool& pool, std::uint64_t bytes) {
  flusher_.flush();
  cross_stream_.pending().poll();
  const std::vector<Heap*> heaps = core_.heapsOf(pool);
  std::uint64_t held = 0;
  for (Heap* heap : heaps) {
    const MutexLock lock(heap->mutex());
    held += heap->counts().reservedBytes();
  }
  if (held > bytes) (void)pool.backing().release(heaps, held - bytes);
}

// Of the pool's own heaps, and of those that are nobody's in particular.
bool GivingBack::makeRoomFor(const Request& request) {
  std::vector<Heap*> heaps = core_.heaps.all();
  std::erase_if(heaps,
                [&](const Heap* heap) { return !heap->pool().givesTo(*request.pool, false); });
  if (core_.segments.release(heaps, UINT64_MAX) > 0) return true;
  if (request.pool->onPages()) return false;
  return core_.pages.release(heaps, request.pool->rules().segmentFor(request)) > 0;
}

void GivingBack::collectGarbage() {
  const double part = core_.options.garbage_collection_threshold;
  if (part <= 0) return;
  const auto threshold = std::uint64_t(part * double(core_.limit.limit()));
  core_.pages.collectGarbage(core_.heaps.all(), threshold);
  core_.segments.collectGarbage(core_.heaps.all(), threshold);
}

}  // namespace cistern
