// What happens when no free block fits: the fallbacks. Each step looks for memory a little further
// away and searches again if it may have freed something; the first block found ends the fallBack.
//
//   allocateSlow
//     flushCaches            every thread's, of every stream
//     fallBack
//       afterEvents             blocks whose last use on other streams is complete by now
//       afterCallbacks          what the application can give up
//       afterGarbageCollection  segments idle for long, when a threshold is set
//       moreMemory              with pages: moved to where they are needed, or made  (pages/)
//                               else: idle segments of other streams, adopted  (reclaim.cpp),
//                               or a new segment, under the limit              (segments/)
//                               and before memory of others that queued work still uses, what
//                               lies free in pools that lend                   (pool_verbs.cpp)
//       underPressure           parts of other streams' memory, complete or ordered by an event;
//                               all idle segments given back, and a new one tried
//       afterWaiting            the host waits for queued work, a stream at a time; the last resort
//     throwOutOfMemory          (reports.hpp)
//
// Nothing here runs under a heap's lock.
#include <bit>

#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/base/process.hpp"
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

void* CachingAllocator::allocateSlow(const Request& request) {
  if (!made_.isHere()) throwInherited();
  if (request.rounded() > device_total_) throwOutOfMemory(request);
  Heap& heap = heapFor(request);
  flushCaches();
  tick_.fetch_add(1, std::memory_order_relaxed);
  Block* block = fallBack(heap, request);
  // What others have freed meanwhile lies in their caches.
  if (block == nullptr && flushCaches()) block = fallBack(heap, request);
  if (block == nullptr) throwOutOfMemory(request);
  void* pointer = toPointer(deviceAddress(*block));
  CISTERN_AUDIT(auditAtTick());
  return pointer;
}

void CachingAllocator::throwOutOfMemory(const Request& request) {
  const std::uint64_t least = onPages(request) ? roundUp(request.rounded(), pages::kUnit)
                                               : SegmentBacking::leastGrowth(request);
  reports_.outOfMemory(request, least, device_total_,
                       pages_ ? pages_->lastDeviceError() : segment_backing_.lastError());
}

void CachingAllocator::throwInherited() {
  throw Error(
      "allocate: this allocator was made before a fork, and is the parent process': a child "
      "makes its own, or only exits");
}

// What the audit build does after a miss: always at first, then ever less often, since each takes
// as long as there are blocks.
void CachingAllocator::auditAtTick() const {
  const std::uint64_t tick = tick_.load(std::memory_order_relaxed);
  if (tick < 256 || std::has_single_bit(tick)) audit();
}

Block* CachingAllocator::fallBack(Heap& heap, const Request& request) {
  if (Block* block = afterEvents(heap, request)) return block;
  if (Block* block = afterCallbacks(heap, request)) return block;
  if (Block* block = afterGarbageCollection(heap, request)) return block;
  if (Block* block = moreMemory(heap, request)) return block;
  if (Block* block = underPressure(heap, request)) return block;
  return afterWaiting(heap, request);
}

Block* CachingAllocator::search(Heap& heap, const Request& request) {
  const MutexLock lock(heap.mutex());
  return heap.allocate(request);
}

Block* CachingAllocator::afterEvents(Heap& heap, const Request& request) {
  pollPending();
  return search(heap, request);
}

Block* CachingAllocator::afterCallbacks(Heap& heap, const Request& request) {
  const bool tidied = hooks_.tidy(Tidying::kMiss);
  return hooks_.reclaim() || tidied ? search(heap, request) : nullptr;
}

// Gives memory back rather than finding any; the growth that follows has the room.
Block* CachingAllocator::afterGarbageCollection(Heap&, const Request&) {
  if (options_.garbage_collection_threshold <= 0) return nullptr;
  const auto threshold = std::uint64_t(options_.garbage_collection_threshold * double(limit()));
  if (pages_) pages_->collectGarbage(threshold);
  segment_backing_.collectGarbage(heaps_.all(), threshold);
  return nullptr;
}

Block* CachingAllocator::moreMemory(Heap& heap, const Request& request) {
  if (!onPages(request)) {
    if (Block* block = fromOtherHeaps(heap, request, Reach::kIdleSegments)) return block;
    if (options_.cross_stream_reuse == CrossStreamReuse::kWait && !request.recording) {
      if (Block* block = loanInOrder(heap, request)) return block;
    }
    return segment_backing_.grow(heap, request);
  }
  if (request.recording) return pages_->serve(heap, request, PagesFrom::kComplete);
  if (anyLenders(request)) {
    if (Block* block = pages_->serve(heap, request, PagesFrom::kComplete)) return block;
    if (Block* block = fromLenders(heap, request)) return block;
  }
  return pages_->serve(heap, request, PagesFrom::kQueued);
}

// Giving a segment back waits for all queued work. So where there is such work, other streams'
// memory comes first; where there is none, it comes last: taken in parts it falls to pieces.
Block* CachingAllocator::underPressure(Heap& heap, const Request& request) {
  const MutexLock lock(pressure_mutex_);
  if (Block* block = search(heap, request)) return block;
  if (onPages(request)) {  // whole pages of theirs were asked for already
    if (Block* block = partsOfOthers(heap, request)) return block;
    return releaseFor(request) ? moreMemory(heap, request) : nullptr;
  }
  const bool idle = streamsAreIdle();
  if (Block* block = idle ? nullptr : partsOfOthers(heap, request)) return block;
  num_alloc_retries_.fetch_add(1, std::memory_order_relaxed);
  while (releaseFor(request)) {
    if (Block* block = segment_backing_.grow(heap, request)) return block;
  }
  if (Block* block = segment_backing_.growTightly(heap, request)) return block;
  if (Block* block = fromLenders(heap, request)) return block;
  return idle ? partsOfOthers(heap, request) : nullptr;
}

Block* CachingAllocator::partsOfOthers(Heap& heap, const Request& request) {
  if (Block* block = fromOtherHeaps(heap, request, Reach::kPartsToo)) return block;
  return loanInOrder(heap, request);
}

// Who has waited for another thread here searches again: that one took what it needed, and left the
// rest.
Block* CachingAllocator::afterWaiting(Heap& heap, const Request& request) {
  if (Block* block = afterPending(heap, request)) return block;
  while (waitForPools()) {
    (void)hooks_.tidy(Tidying::kMiss);  // tells the program, which may free more
    if (Block* block = moreMemory(heap, request)) return block;
    if (Block* block = underPressure(heap, request)) return block;
  }
  const MutexLock lock(waiting_mutex_);
  if (onPages(request)) return afterTheDevice(heap, request);
  if (Block* block = underPressure(heap, request)) return block;
  return loanWhenIdle(heap, request);
}

bool CachingAllocator::waitForPools() {
  const MutexLock lock(waiting_mutex_);
  return hooks_.tidy(Tidying::kLastResort);
}

Block* CachingAllocator::afterPending(Heap& heap, const Request& request) {
  const MutexLock lock(waiting_mutex_);
  while (pending_.waiting() > 0) {
    num_sync_all_streams_.fetch_add(1, std::memory_order_relaxed);
    if (!pending_.wait()) break;
    if (Block* block = search(heap, request)) return block;
    if (onPages(request)) {
      if (Block* block = moreMemory(heap, request)) return block;
    }
    if (Block* block = underPressure(heap, request)) return block;
  }
  return nullptr;
}

// What streams cannot be asked about, because they were destroyed, is complete when the whole
// device is.
Block* CachingAllocator::afterTheDevice(Heap& heap, const Request& request) {
  num_sync_all_streams_.fetch_add(1, std::memory_order_relaxed);
  if (!progress_.completeAll(heaps_.all())) return nullptr;
  if (Block* block = moreMemory(heap, request)) return block;
  return underPressure(heap, request);
}

// The heap of a stream; one that is seen for the first time, or again after it was forgotten, must
// be alive.
Heap& CachingAllocator::heapFor(const Request& request) {
  const Stream stream = request.stream;
  Pool& pool = *request.pool;
  if (Heap* heap = pool.isDefault() ? heaps_.find(stream) : pool.find(stream))
    return pool.isDefault() ? *heap : knownToCapture(*heap);
  requireLive(stream);
  streams_.registerStream(stream);
  if (pool.isDefault()) return heaps_.findOrMake(stream, spareHeap());
  return knownToCapture(heaps_.findOrMake(pool, stream));
}

// A heap that is made while a capture into its pool is under way. Whoever is first to have memory
// of it has come by here, also if another thread has made it.
Heap& CachingAllocator::knownToCapture(Heap& heap) {
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
Heap* CachingAllocator::spareHeap() {
  constexpr int kLooks = 2;
  for (int i = 0; i < kLooks; ++i) {
    Heap* const heap = heaps_.takeGone();
    if (heap == nullptr || holdsNothing(*heap)) return heap;
    heaps_.giveGone(*heap);
  }
  return nullptr;
}

void CachingAllocator::requireLive(Stream stream) {
  const Result<CaptureInfo> info = device_.captureInfo(stream);
  if (info.ok() || info.error().kind != ErrorKind::kInvalidHandle) return;
  throw InvalidArgument(fmt::format("stream {:#x} is not a live stream of {} device {} ({})",
                                    stream.raw, device_.backend(), device_.ordinal(),
                                    info.error().name));
}

}  // namespace cistern
