// What verbs do for a graph capture that is under way into a pool (recording/recording.hpp). The
// capture never waits, never gives anything back to the device, and puts nothing into the graph.
//
//   allocateRecorded
//     the heap's own free memory    complete, or freed by the capture in the stream's order
//     withinRecording               what other streams of the capture left, where the graph's order
//                                   allows it
//     climbRecorded                 completed memory of others, and growth
//     pinFor                        the graph knows the address: it stays backed
#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

void* CachingAllocator::allocateRecorded(const Request& request) {
  if (request.rounded() > device_total_) throwOutOfMemory(request);
  Heap& heap = heapFor(request);
  Block* block = nullptr;
  {
    const MutexLock lock(heap.mutex());
    block = heap.allocate(request);
  }
  const bool miss = block == nullptr;
  if (miss) {
    tick_.fetch_add(1, std::memory_order_relaxed);
    block = climbRecorded(heap, request);
    if (block == nullptr && takeCachesBack()) block = climbRecorded(heap, request);
  }
  if (block == nullptr) throwOutOfMemory(request);
  pinFor(*request.recording, *block);
  void* pointer = toPointer(deviceAddress(*block));
  if (miss) CISTERN_AUDIT(auditAtTick());
  return pointer;
}

Block* CachingAllocator::climbRecorded(Heap& heap, const Request& request) {
  if (Block* block = withinRecording(heap, request)) return block;
  if (Block* block = afterEvents(heap, request)) return block;
  if (Block* block = afterCallbacks(heap, request)) return block;
  if (Block* block = moreMemory(heap, request)) return block;
  if (!onPages(request)) {
    if (Block* block = segment_backing_.growTightly(heap, request)) return block;
  }
  return fromOtherHeaps(heap, request, Reach::kPartsToo);
}

// What the stream's further work follows in the graph is asked only if there is something to find.
Block* CachingAllocator::withinRecording(Heap& heap, const Request& request) {
  if (!options_.reusesAcrossStreams()) return nullptr;
  Recording& recording = *request.recording;
  const MutexLock lock(recording.mutex());
  if (recording.over()) return nullptr;
  if (Block* block =
          reissue(request, recording.takeOwn(request.grains, request.kind, request.stream)))
    return block;
  const bool any = recording.mayServe(heap, request.grains, request.kind);
  if (!any && !othersFit(heap, request)) return nullptr;
  Recording::Reach reach;
  if (!recording.reachOf(request.stream, reach)) return nullptr;
  takeBackFollowed(heap, recording, reach);
  if (Block* block = search(heap, request)) return block;
  if (Block* block = reissue(request, recording.takeFor(request.grains, request.kind, reach)))
    return block;
  return takeFollowed(heap, request, reach);
}

bool CachingAllocator::othersFit(const Heap& heap, const Request& request) {
  const std::vector<Heap*> heaps = request.pool->heaps();
  return std::any_of(heaps.begin(), heaps.end(), [&](Heap* owner) CISTERN_NO_TSA {
    if (owner == &heap) return false;
    const MutexLock lock(owner->mutex());
    return fitting(*owner, request, Reach::kPartsToo, {}) != nullptr;
  });
}

// Blocks of this heap that streams used which its own now follows.
void CachingAllocator::takeBackFollowed(Heap& heap, Recording& recording,
                                        const Recording::Reach& reach) CISTERN_NO_TSA {
  RetiredBlocks blocks = recording.takeFollowed(heap, reach);
  if (blocks.empty()) return;
  const MutexLock lock(heap.mutex());
  while (Block* block = blocks.pop()) {
    (void)recording.noteFree(heap);
    heap.release(*block, tick_.load(std::memory_order_relaxed));
  }
}

Block* CachingAllocator::reissue(const Request& request, PendingFrees::Retired retired) {
  if (retired.block == nullptr) return nullptr;
  const MutexLock lock(retired.heap->mutex());
  retired.heap->reissue(*retired.block, request);
  return retired.block;
}

// Free memory of the capture's other streams: as a guest, until it is freed.
Block* CachingAllocator::takeFollowed(Heap& heap, const Request& request,
                                      const Recording::Reach& reach) CISTERN_NO_TSA {
  for (Heap* owner : request.pool->heaps()) {
    if (owner == &heap) continue;
    markFrees(*request.recording, *owner);
    const MutexLock lock(owner->mutex());
    const Epochs epochs = request.recording->followed(*owner, reach);
    Block* free = fitting(*owner, request, Reach::kPartsToo, epochs);
    if (free != nullptr) return owner->allocateFrom(*free, request);
  }
  return nullptr;
}

// Where its stream does not tell what it has reached, or the host is short of memory, what was
// freed stays unmarked.
void CachingAllocator::markFrees(Recording& recording, Heap& heap) noexcept CISTERN_NO_TSA {
  if (!recording.unmarked(heap)) return;
  try {
    Recording::Frontier frontier;
    if (!recording.frontierOf(heap.stream(), frontier)) return;
    const MutexLock lock(heap.mutex());
    recording.mark(heap, frontier);
  } catch (const std::bad_alloc&) {
  }
}

// When the host is out of memory the block is free again, as if it had never been found.
void CachingAllocator::pinFor(Recording& recording, Block& block) {
  HeapSegment& segment = segmentOf(block);
  Heap& heap = *segment.heap.load(std::memory_order_acquire);
  try {
    const MutexLock lock(recording.mutex());
    if (recording.over()) return;  // the graph is made without it
    if (heap.onPages()) {
      pages_->pin(block, recording.number(), recording.pins);
    } else {
      pinned_segments_.pin(segment, recording.number(), recording.pins);
    }
  } catch (...) {
    freeAt(deviceAddress(block), nullptr);
    throw;
  }
}

// ---- Freeing -----------------------------------------------------------------------------------

// A capture that has ended meanwhile leaves an ordinary free; or one of the next capture, which
// the heap then knows. `recorded`: what it knew. A wrong one is told without a lock.
void CachingAllocator::freeRecorded(Heap& heap, HeapSegment& segment, Address address,
                                    const void* caller, std::uint32_t recorded) noexcept {
  const std::shared_ptr<Recording> recording = heap.pool().recording();
  if (recording != nullptr) {
    const FreedInto into = freeInto(*recording, heap, segment, address, caller);
    if (into == FreedInto::kNothing) return reports_.misuse("free", address);
    if (into == FreedInto::kRecording) return;
  }
  {
    const MutexLock lock(heap.mutex());
    if (heap.recorded == recorded) heap.recorded = 0;
  }
  freeAt(address, caller);
}

CachingAllocator::FreedInto CachingAllocator::freeInto(Recording& recording, Heap& heap,
                                                       HeapSegment& segment, Address address,
                                                       const void* caller) noexcept {
  const MutexLock lock(recording.mutex());
  if (recording.over()) return FreedInto::kOver;
  Block* block = nullptr;
  {
    const MutexLock heap_lock(heap.mutex());
    block = heap.find(segment, address);
    if (block) heap.frees.note(address, block->grains, caller, threadNumber());
  }
  if (block == nullptr) return FreedInto::kNothing;
  freeDuring(recording, heap, *block);
  return FreedInto::kRecording;
}

// Pre: the recording's lock is held.
void CachingAllocator::freeDuring(Recording& recording, Heap& heap,
                                  Block& block) noexcept CISTERN_NO_TSA {
  const Recording::Part part = recording.partOf(block);
  if (part == Recording::Part::kNone) return freeFromBefore(heap, block);
  const bool present = part == Recording::Part::kPresent;
  bool mark = false;
  StreamUses users;
  {
    const MutexLock lock(heap.mutex());
    const Stream stream = block.use.stream;
    if (present && block.use.uses == nullptr && stream == heap.stream()) {
      mark = recording.noteFree(heap) && options_.reusesAcrossStreams();
      heap.release(block, tick_.load(std::memory_order_relaxed));
    } else {
      users = heap.retire(block);
      users.add(stream);
    }
  }
  const PendingFrees::Retired retired{&heap, &block};
  if (!users.empty())
    present ? recording.defer(retired, users) : recording.keepApart(retired, users);
  if (mark) markFrees(recording, heap);
}

// What was not allocated in the capture has been used by work that is queued, not recorded. It is
// free when that is complete; until then it must not lie beside what the capture frees.
void CachingAllocator::freeFromBefore(Heap& heap, Block& block) noexcept {
  StreamUses uses;
  {
    const MutexLock lock(heap.mutex());
    uses = heap.retire(block);
  }
  uses.add(heap.stream());
  settleRetired(heap, block, uses, true);
}

// What the capture recorded has not run: nothing waits for it. But what else was queued on those
// streams may have used the block.
void CachingAllocator::settleDeferred(const Recording::Deferred& deferred) noexcept {
  const PendingFrees::Retired& retired = deferred.retired;
  if (deferred.unknown) return pending_.addUnknown(retired);
  if (deferred.others.empty()) return putBack(retired);
  settleRetired(*retired.heap, *retired.block, deferred.others);
}

// ---- Beginning and ending ----------------------------------------------------------------------

// While a capture into a pool is under way, what lies free in the pool is complete, or was freed by
// the capture. So a stream that joins later may take it, and it does no harm that the two coalesce.
// What comes back into the pool meanwhile is held to that too: see putBack.
// Pages go home first: what captures have in common then needs the same windows, which are mapped.
void CachingAllocator::beginRecording(std::shared_ptr<Recording> recording, Stream origin) {
  Pool& pool = recording->pool();
  const std::uint32_t number = recording->number();
  takeCachesBack();
  for (Heap* heap : heaps_.all()) {  // while it can be asked: a captured stream does not tell
    if (!heap->pool().givesTo(pool, false)) continue;
    heap->stream() == origin ? progress_.refresh(*heap) : progress_.refreshByEvent(*heap);
  }
  pool.setRecording(std::move(recording));
  try {
    for (Heap* heap : pool.heaps()) {
      beginRecording(*heap, number);
      if (heap->onPages()) atLowTide(*heap);
    }
  } catch (...) {
    pool.forEachHeap([&](Heap& heap) {
      const MutexLock lock(heap.mutex());
      if (heap.recorded == number) heap.recorded = 0;
    });
    pool.setRecording(nullptr);
    throw;
  }
  progress_.captureBegins();
}

// Free memory that queued work may still use waits, as if it were freed only now. A miss that takes
// such memory from elsewhere has it in the heap by now, or is told not to.
void CachingAllocator::beginRecording(Heap& heap, std::uint32_t number) CISTERN_NO_TSA {
  std::vector<Block*> blocks;
  {
    std::unique_lock<Mutex> backing;
    if (heap.onPages()) backing = std::unique_lock(pages_->mutex());
    const MutexLock lock(heap.mutex());
    heap.recorded = number;
    heap.before_recording = heap.endedEpoch();
    blocks = heap.incomplete();
    for (Block* block : blocks) heap.setAside(*block);
  }
  for (Block* block : blocks) settleRetired(heap, *block, {heap.stream()});
}

// A free is the capture's, or comes after all that the capture has freed is complete.
Pins CachingAllocator::endRecording(Recording& recording) noexcept {
  progress_.captureEnds();
  Pool& pool = recording.pool();
  Pins pins;
  {
    const MutexLock lock(recording.mutex());
    recording.finish();
    pins = std::exchange(recording.pins, {});
    pool.forEachHeap([&](Heap& heap) { endRecording(heap, recording.number()); });
  }
  pool.setRecording(nullptr);
  const auto more = [&recording](Recording::Deferred& deferred) {
    const MutexLock lock(recording.mutex());
    return recording.takeDeferred(deferred);
  };
  for (Recording::Deferred deferred; more(deferred);) settleDeferred(deferred);
  return pins;
}

// Views that pages left before the capture may be in use still: then no epoch is complete by it.
void CachingAllocator::endRecording(Heap& heap, std::uint32_t number) noexcept CISTERN_NO_TSA {
  std::unique_lock<Mutex> backing;
  if (heap.onPages()) backing = std::unique_lock(pages_->mutex());
  const MutexLock lock(heap.mutex());
  if (heap.recorded != number) return;  // a stream has come in at this moment, with nothing
  heap.recorded = 0;
  const bool left_behind = heap.onPages() && pages_->leftInUse(heap, heap.before_recording);
  left_behind ? heap.noteFreeComplete() : heap.noteComplete(heap.endedEpoch());
}

void CachingAllocator::unpin(Pins& pins) noexcept {
  if (!pins.views.empty()) pages_->unpin(pins.views);
  for (HeapSegment* segment : pins.segments) pinned_segments_.unpin(*segment);
  pins = {};
}

}  // namespace cistern
