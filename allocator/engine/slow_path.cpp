// What happens when no free block fits: the ladder. Each step looks for memory a little further
// away and searches again if it may have freed something; the first block found ends the climb.
//
//   allocateSlow
//     takeCachesBack            every thread's, of every stream
//     climb
//       afterEvents             blocks whose last use on other streams is complete by now
//       afterCallbacks          what the application can give up
//       afterGarbageCollection  segments idle for long, when a threshold is set
//       moreMemory              with pages: moved to where they are needed, or made  (pages/)
//                               else: idle segments of other streams, adopted  (reclaim.cpp),
//                               or a new segment, under the limit              (growth.cpp)
//                               and before memory of others that queued work still uses, what
//                               lies free in pools that lend                   (pool_verbs.cpp)
//       underPressure           parts of other streams' memory, complete or ordered by an event;
//                               all idle segments given back, and a new one tried
//       afterWaiting            the host waits for queued work, a stream at a time; the last resort
//     throwOutOfMemory          (report.cpp)
//
// Nothing here runs under a heap's lock.
#include <bit>

#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/base/process.hpp"
#include "allocator/engine/caching_allocator.hpp"
#include "allocator/engine/hook_scope.hpp"

namespace cistern {

namespace {

// Where there are no pages, segments do what they would have done.
Options possibleOn(const Device& device, Options options) {
  if (!PageBacking::supportedBy(device)) options.backing = Backing::kSegments;
  return options;
}

/// All caches together may keep this part of the device; one of them may keep a large block of
/// `thread_cache` times the other.
constexpr std::uint64_t kCachesPart = 64, kLargeCache = 4;

Options inSegments(Options options) {
  options.backing = Backing::kSegments;
  return options;
}

// Where sizes are rounded in other ways, a block's size does not say which requests it is for.
CacheTable::Limits cacheLimits(Device& device, const Options& options) {
  if (options.thread_cache == 0 || !SizeRules(options).plain() || !BiasedGate::available())
    return {};
  const std::uint64_t all = device.memoryInfo().orThrow().total_bytes / kCachesPart;
  return {options.thread_cache, options.thread_cache * kLargeCache, all};
}

}  // namespace

CachingAllocator::CachingAllocator(Device& device, const Options& options,
                                   CacheTable::Limits cache_limits)
    : device_(device),
      options_(options),
      rules_(options_),
      segment_rules_(inSegments(options_)),
      whole_rules_(options_, true),
      default_pool_(true, rules_, options_.backing == Backing::kPages),
      events_(device),
      heaps_(default_pool_, options_.free_log, totals_),
      caches_(cache_limits, tick_, totals_),
      streams_(device, events_, heaps_),
      pending_(device, events_, streams_,
               [this](const PendingFrees::Retired& retired) { putBack(retired); }),
      progress_(device, events_, streams_) {}

CachingAllocator::CachingAllocator(Device& device, const Options& options)
    : CachingAllocator(device, possibleOn(device, options),
                       cacheLimits(device, possibleOn(device, options))) {
  (void)driverMayBeCalled();  // registers for the exit, which must happen before it
  device_total_ = device_.memoryInfo().orThrow().total_bytes;
  setMemoryFraction(options_.memory_fraction);
  if (options_.limit != 0 && options_.limit < limit()) setLimit(options_.limit);
  if (options_.backing != Backing::kPages) return;
  pages_ = std::make_unique<PageBacking>(pages::Surroundings{device_, options_, limit_, heaps_,
                                                             segments_, streams_, progress_,
                                                             heaps_mutex_, places_, device_total_});
}

void* CachingAllocator::allocateSlow(const Request& request) {
  if (!made_.isHere()) throwInherited();
  if (request.rounded() > device_total_) throwOutOfMemory(request);
  Heap& heap = heapFor(request);
  takeCachesBack();
  tick_.fetch_add(1, std::memory_order_relaxed);
  Block* block = climb(heap, request);
  // What others have freed meanwhile lies in their caches.
  if (block == nullptr && takeCachesBack()) block = climb(heap, request);
  if (block == nullptr) throwOutOfMemory(request);
  void* pointer = toPointer(deviceAddress(*block));
  CISTERN_AUDIT(auditAtTick());
  return pointer;
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

Block* CachingAllocator::climb(Heap& heap, const Request& request) {
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
  const auto callbacks = [this] {
    const MutexLock lock(hooks_mutex_);
    return reclaim_callbacks_;
  }();
  bool freed = tidyPools(Tidying::kMiss);
  if (!HookScope::inside(&reclaim_callbacks_)) {
    const HookScope inside(&reclaim_callbacks_);
    for (const auto& callback : callbacks) freed |= callback();
  }
  return freed ? search(heap, request) : nullptr;
}

// Gives memory back rather than finding any; the growth that follows has the room.
Block* CachingAllocator::afterGarbageCollection(Heap&, const Request&) {
  if (options_.garbage_collection_threshold > 0) collectGarbage();
  return nullptr;
}

Block* CachingAllocator::moreMemory(Heap& heap, const Request& request) {
  if (!onPages(request)) {
    if (Block* block = fromOtherHeaps(heap, request, Reach::kIdleSegments)) return block;
    if (options_.cross_stream_reuse == CrossStreamReuse::kWait && !request.recording) {
      if (Block* block = borrowInOrder(heap, request)) return block;
    }
    return grow(heap, request);
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
    if (Block* block = grow(heap, request)) return block;
  }
  if (Block* block = growTightly(heap, request)) return block;
  if (Block* block = fromLenders(heap, request)) return block;
  return idle ? partsOfOthers(heap, request) : nullptr;
}

Block* CachingAllocator::partsOfOthers(Heap& heap, const Request& request) {
  if (Block* block = fromOtherHeaps(heap, request, Reach::kPartsToo)) return block;
  return borrowInOrder(heap, request);
}

// Who has waited for another thread here searches again: that one took what it needed, and left the
// rest.
Block* CachingAllocator::afterWaiting(Heap& heap, const Request& request) {
  if (Block* block = afterPending(heap, request)) return block;
  while (waitForPools()) {
    (void)tidyPools(Tidying::kMiss);  // tells the program, which may free more
    if (Block* block = moreMemory(heap, request)) return block;
    if (Block* block = underPressure(heap, request)) return block;
  }
  const MutexLock lock(waiting_mutex_);
  if (onPages(request)) return afterTheDevice(heap, request);
  if (Block* block = underPressure(heap, request)) return block;
  return borrowWhenIdle(heap, request);
}

bool CachingAllocator::waitForPools() {
  const MutexLock lock(waiting_mutex_);
  return tidyPools(Tidying::kLastResort);
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
  streams_.meet(stream);
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
  if (heap.recorded == recording->number()) return heap;
  heap.recorded = recording->number();
  heap.before_recording = heap.endedEpoch();
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
