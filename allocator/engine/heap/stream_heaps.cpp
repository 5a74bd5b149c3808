#include "allocator/engine/heap/stream_heaps.hpp"

#include "allocator/engine/capture/recording.hpp"

namespace cistern {

// A stream that is seen for the first time, or again after it was forgotten, must be alive.
Heap& StreamHeaps::of(const Request& request) {
  const Stream stream = request.stream;
  Pool& pool = *request.pool;
  if (Heap* heap = pool.isDefault() ? core_.heaps.find(stream) : pool.find(stream))
    return pool.isDefault() ? *heap : knownToCapture(*heap);
  core_.requireLive(stream);
  core_.streams.registerStream(stream);
  if (pool.isDefault()) return core_.heaps.findOrMake(stream, spare());
  return knownToCapture(core_.heaps.findOrMake(pool, stream));
}

// A heap that is made while a capture into its pool is under way. Whoever is first to have memory
// of it has come by here, also if another thread has made it.
Heap& StreamHeaps::knownToCapture(Heap& heap) {
  const std::shared_ptr<Recording> recording = heap.pool().recording();
  if (recording == nullptr) return heap;
  const MutexLock lock(recording->mutex());
  if (recording->over()) return heap;
  const MutexLock heap_lock(heap.mutex());
  if (heap.completion().recorded() == recording->number()) return heap;
  heap.completion().beginRecording(recording->number(), heap.endedEpoch());
  return heap;
}

// A heap whose stream is gone and that holds nothing any more; or null. A few are looked at.
Heap* StreamHeaps::spare() {
  constexpr int kLooks = 2;
  for (int i = 0; i < kLooks; ++i) {
    Heap* const heap = core_.heaps.takeGone();
    if (heap == nullptr || holdsNothing(*heap)) return heap;
    core_.heaps.giveGone(*heap);
  }
  return nullptr;
}

bool StreamHeaps::holdsNothing(Heap& heap) {
  const auto empty = [&]() CISTERN_REQUIRES(heap.mutex()) {
    return heap.counts().reservedBytes() == 0 && heap.busyBytes() == 0 && !heap.leaving().any();
  };
  {
    const MutexLock lock(heap.mutex());  // most hold something: the device is not asked for those
    if (!empty()) return false;
  }
  core_.progress.refreshByEvent(heap);
  {
    const MutexLock lock(heap.mutex());
    if (!empty() || heap.completion().isAsked()) return false;
  }
  return heap.backing().forgets(heap);
}

}  // namespace cistern
