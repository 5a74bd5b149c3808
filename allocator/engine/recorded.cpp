// What verbs do for a graph capture that is under way into a pool (recording/recording.hpp). The
// capture never waits, never gives anything back to the device, and puts nothing into the graph.
//
//   allocateRecorded
//     the heap's own free memory    complete, or freed by the capture in the stream's order
//     fallBackRecorded
//       Recording::take             what other streams of the capture left, where the graph's order
//                                   allows it
//       steps of any miss           completed memory of others, and growth
//     pinFor                        the graph knows the address: it stays backed
#include <mutex>
#include <utility>

#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

namespace {

Heap& heapOf(const Block& block) { return *segmentOf(block).heap.load(std::memory_order_acquire); }

}  // namespace

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
    block = fallBackRecorded(heap, request);
    if (block == nullptr && flushCaches()) block = fallBackRecorded(heap, request);
  }
  if (block == nullptr) throwOutOfMemory(request);
  pinFor(*request.recording, *block);
  void* pointer = toPointer(deviceAddress(*block));
  if (miss) CISTERN_AUDIT(auditAtTick());
  return pointer;
}

Block* CachingAllocator::fallBackRecorded(Heap& heap, const Request& request) {
  if (Block* block = request.recording->take(heap, request)) return block;
  if (Block* block = afterEvents(heap, request)) return block;
  if (Block* block = afterCallbacks(heap, request)) return block;
  if (Block* block = moreMemory(heap, request)) return block;
  if (!onPages(request)) {
    if (Block* block = segment_backing_.growTightly(heap, request)) return block;
  }
  return fromOtherHeaps(heap, request, Reach::kPartsToo);
}

// When the host is out of memory the block is free again, as if it had never been found.
void CachingAllocator::pinFor(Recording& recording, Block& block) {
  try {
    const MutexLock lock(recording.mutex());
    if (recording.over()) return;  // the graph is made without it
    if (heapOf(block).onPages()) {
      pages_->pin(block, recording.number(), recording.pins);
    } else {
      pinned_segments_.pin(segmentOf(block), recording.number(), recording.pins);
    }
  } catch (...) {
    freeAt(deviceAddress(block), nullptr);
    throw;
  }
}

// ---- Freeing -----------------------------------------------------------------------------------

// A capture that has ended meanwhile leaves an ordinary free; or one of the next capture, which
// the heap then knows. `recorded`: what it knew. What was not allocated in the capture has been
// used by work that is queued, not recorded: it is free when that is complete, and until then it
// must not lie beside what the capture frees. A wrong free is told without a lock.
void CachingAllocator::freeRecorded(Heap& heap, HeapSegment& segment, Address address,
                                    const void* caller, std::uint32_t recorded) noexcept {
  using How = Recording::Freed::How;
  Recording::Freed freed{How::kOver, nullptr, {}};
  if (const std::shared_ptr<Recording> recording = heap.pool().recording())
    freed = recording->free(heap, segment, address, caller);
  if (freed.how == How::kNotHeld) return reports_.misuse("free", address);
  if (freed.how == How::kFromBefore) return deferFree(heap, *freed.block, freed.users, true);
  if (freed.how == How::kDone) return;
  {
    const MutexLock lock(heap.mutex());
    (void)heap.completion().endRecording(recorded);
  }
  freeAt(address, caller);
}

// ---- Beginning and ending ----------------------------------------------------------------------

// While a capture into a pool is under way, what lies free in the pool is complete, or was freed by
// the capture. So a stream that joins later may take it, and it does no harm that the two coalesce.
// What comes back into the pool meanwhile is held to that too: see putBack.
// Pages go home first: what captures have in common then needs the same windows, which are mapped.
void CachingAllocator::beginRecording(std::shared_ptr<Recording> recording, Stream origin) {
  Pool& pool = recording->pool();
  const std::uint32_t number = recording->number();
  recording->attach(tick_, options_.reusesAcrossStreams());
  flushCaches();
  for (Heap* heap : heaps_.all()) {  // while it can be asked: a captured stream does not tell
    if (!heap->pool().givesTo(pool, false)) continue;
    heap->stream() == origin ? progress_.refresh(*heap) : progress_.refreshByEvent(*heap);
  }
  pool.setRecording(std::move(recording));
  try {
    for (Heap* heap : pool.heaps()) {
      beginRecording(*heap, number);
      if (heap->onPages()) atLowWater(*heap);
    }
  } catch (...) {
    pool.forEachHeap([&](Heap& heap) {
      const MutexLock lock(heap.mutex());
      (void)heap.completion().endRecording(number);
    });
    pool.setRecording(nullptr);
    throw;
  }
  progress_.captureBegins();
}

// Free memory that queued work may still use waits, as if it were freed only now. A miss that takes
// such memory from elsewhere has it in the heap by now, or is told not to.
void CachingAllocator::beginRecording(Heap& heap, std::uint32_t number) {
  std::vector<Block*> blocks;
  {
    std::unique_lock<Mutex> backing;
    if (heap.onPages()) backing = std::unique_lock(pages_->mutex());
    const MutexLock lock(heap.mutex());
    heap.completion().beginRecording(number, heap.endedEpoch());
    blocks = incompleteBlocks(heap);
    for (Block* block : blocks) heap.setAside(*block);
  }
  for (Block* block : blocks) deferFree(heap, *block, {heap.stream()});
}

// A free is the capture's, or comes after all that the capture has freed is complete. What the
// capture recorded has not run: nothing waits for it. But what else was queued on streams that it
// did not record may have used a block.
Pins CachingAllocator::endRecording(Recording& recording) noexcept {
  progress_.captureEnds();
  Pool& pool = recording.pool();
  Pins pins;
  Recording::Left left;
  {
    const MutexLock lock(recording.mutex());
    left = recording.finish();
    pins = std::exchange(recording.pins, {});
    pool.forEachHeap([&](Heap& heap) { endRecording(heap, recording.number()); });
  }
  pool.setRecording(nullptr);
  while (Block* block = left.free.pop()) putBack({&heapOf(*block), block});
  for (const auto& [block, streams] : left.outside) deferFree(heapOf(*block), *block, streams);
  while (Block* block = left.unknown.pop()) pending_.addUnknown({&heapOf(*block), block});
  return pins;
}

// Views that pages left before the capture may be in use still: then no epoch is complete by it.
void CachingAllocator::endRecording(Heap& heap, std::uint32_t number) noexcept {
  std::unique_lock<Mutex> backing;
  if (heap.onPages()) backing = std::unique_lock(pages_->mutex());
  const MutexLock lock(heap.mutex());
  Completion& known = heap.completion();
  if (!known.endRecording(number)) return;  // a stream has come in at this moment, with nothing
  const bool left_behind = heap.onPages() && pages_->leftInUse(heap, known.beforeRecording());
  left_behind ? noteFreeComplete(heap) : known.noteComplete(heap.endedEpoch());
}

void CachingAllocator::unpin(Pins& pins) noexcept {
  if (!pins.mappings.empty()) pages_->unpin(pins.mappings);
  for (HeapSegment* segment : pins.segments) pinned_segments_.unpin(*segment);
  pins = {};
}

}  // namespace cistern
