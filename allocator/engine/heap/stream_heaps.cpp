#include "allocator/engine/heap/stream_heaps.hpp"

#include "allocator/engine/capture/recording.hpp"

namespace cistern {
namespace {

// A heap may be made while a capture into its pool is under way. Every first user of it passes
// here, so it learns of the capture before it hands out memory.
Heap& knownToCapture(Heap& heap) {
  const std::shared_ptr<Recording> recording = heap.pool().recording();
  if (recording == nullptr) return heap;
  const MutexLock lock(recording->mutex());
  if (recording->over()) return heap;
  const MutexLock heap_lock(heap.mutex());
  if (heap.completion().recorded() != recording->number())
    heap.completion().beginRecording(recording->number(), heap.endedEpoch());
  return heap;
}

// A heap whose stream is gone and that holds nothing any more; or null. A few are looked at.
Heap* spareHeap(Core& core) {
  constexpr int kLooks = 2;
  for (int i = 0; i < kLooks; ++i) {
    Heap* const heap = core.heaps.takeGone();
    if (heap == nullptr || holdsNothing(core, *heap)) return heap;
    core.heaps.giveGone(*heap);
  }
  return nullptr;
}

}  // namespace

// A stream that is seen for the first time, or again after it was forgotten, must be alive.
Heap& heapFor(Core& core, const Request& request) {
  const Stream stream = request.stream;
  Pool& pool = *request.pool;
  if (Heap* heap = pool.isDefault() ? core.heaps.find(stream) : pool.find(stream))
    return pool.isDefault() ? *heap : knownToCapture(*heap);
  core.requireLive(stream);
  core.streams.registerStream(stream);
  if (pool.isDefault()) return core.heaps.findOrMake(stream, spareHeap(core));
  return knownToCapture(core.heaps.findOrMake(pool, stream));
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

}  // namespace cistern
