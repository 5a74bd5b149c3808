// What verbs do for a graph capture that is under way into a pool (recording/recording.hpp). The
// capture never waits, never gives anything back to the device, and puts nothing into the graph.
//
//   allocateRecorded
//     the heap's own free memory    in the stream's order, which the graph keeps
//     withinRecording               what other streams of the capture left, where the graph's order
//                                   allows it
//     climbRecorded                 completed memory of others, and growth
//     pinFor                        the graph knows the address: it stays backed
#include <algorithm>

#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

void* CachingAllocator::allocateRecorded(const Request& request) {
  if (request.rounded() > device_total_) throwOutOfMemory(request);
  Heap& heap = heapFor(request);
  Block* block = nullptr;
  {
    const MutexLock lock(heap.mutex());
    heap.recorded = true;
    block = heap.allocate(request);
  }
  const bool miss = block == nullptr;
  if (miss) {
    tick_.fetch_add(1, std::memory_order_relaxed);
    block = climbRecorded(heap, request);
  }
  if (block == nullptr) throwOutOfMemory(request);
  pinFor(*request.recording, *block);
  void* pointer = toPointer(deviceAddress(*block));
  settle();
  if (miss) CISTERN_AUDIT(auditAtTick());
  return pointer;
}

Block* CachingAllocator::climbRecorded(Heap& heap, const Request& request) {
  if (Block* block = withinRecording(heap, request)) return block;
  if (Block* block = afterEvents(heap, request)) return block;
  if (Block* block = afterCallbacks(heap, request)) return block;
  if (Block* block = moreMemory(heap, request)) return block;
  if (!onPages(request)) {
    if (Block* block = growTightly(heap, request)) return block;
  }
  return fromOtherHeaps(heap, request, Reach::kPartsToo);
}

// What the stream's further work follows in the graph is asked only if there is something to find.
Block* CachingAllocator::withinRecording(Heap& heap, const Request& request) {
  if (!options_.cross_stream_reuse) return nullptr;
  Recording& recording = *request.recording;
  const MutexLock lock(recording.mutex());
  if (recording.over()) return nullptr;
  if (!recording.anyDeferred() && request.pool->heaps().size() == 1) return nullptr;
  Recording::Nodes frontier;
  Recording::Reach reach;
  if (!recording.frontierOf(request.stream, frontier)) return nullptr;
  if (!recording.order.reachOf(frontier, reach)) return nullptr;
  takeBackFollowed(heap, recording, frontier, reach);
  if (Block* block = search(heap, request)) return block;
  if (Block* block = takeDeferred(request, reach)) return block;
  return takeFollowed(heap, request, reach);
}

// Blocks of this heap that streams used which its own now follows.
void CachingAllocator::takeBackFollowed(Heap& heap, Recording& recording,
                                        const Recording::Nodes& frontier,
                                        const Recording::Reach& reach) CISTERN_NO_TSA {
  const std::vector<Block*> blocks = recording.takeFollowed(heap, reach);
  if (blocks.empty()) return;
  const MutexLock lock(heap.mutex());
  recording.markFree(heap, frontier);
  for (Block* block : blocks) heap.release(*block, tick_.load(std::memory_order_relaxed));
}

Block* CachingAllocator::takeDeferred(const Request& request,
                                      const Recording::Reach& reach) CISTERN_NO_TSA {
  const auto [heap, block] = request.recording->takeFor(request.grains, request.kind, reach);
  if (block == nullptr) return nullptr;
  const MutexLock lock(heap->mutex());
  heap->reissue(*block, request);
  return block;
}

// Free memory of the capture's other streams: as a guest, until it is freed.
Block* CachingAllocator::takeFollowed(Heap& heap, const Request& request,
                                      const Recording::Reach& reach) CISTERN_NO_TSA {
  for (Heap* owner : request.pool->heaps()) {
    if (owner == &heap) continue;
    const MutexLock lock(owner->mutex());
    const Epochs epochs = request.recording->followed(*owner, reach);
    Block* free = fitting(*owner, request, Reach::kPartsToo, epochs);
    if (free != nullptr) return owner->allocateFrom(*free, request);
  }
  return nullptr;
}

// When the host is out of memory the block is free again, as if it had never been found.
void CachingAllocator::pinFor(Recording& recording, Block& block) {
  HeapSegment& segment = segmentOf(block);
  Heap& heap = *segment.heap.load(std::memory_order_relaxed);
  try {
    const MutexLock lock(recording.mutex());
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

// A capture that has ended meanwhile leaves an ordinary free.
void CachingAllocator::freeRecorded(Heap& heap, HeapSegment& segment, Address address,
                                    const void* caller) noexcept {
  const std::shared_ptr<Recording> recording = heap.pool().recording();
  if (recording != nullptr) {
    const MutexLock lock(recording->mutex());
    if (!recording->over()) {
      Block* block = nullptr;
      {
        const MutexLock heap_lock(heap.mutex());
        block = heap.find(segment, address);
        if (block) heap.frees.note(address, block->grains, caller, threadNumber());
      }
      if (block) return freeDuring(*recording, heap, *block);
    }
  }
  {
    const MutexLock lock(heap.mutex());
    heap.recorded = false;
  }
  freeAt(address, caller);
}

// Pre: the recording's lock is held.
void CachingAllocator::freeDuring(Recording& recording, Heap& heap,
                                  Block& block) noexcept CISTERN_NO_TSA {
  StreamUses uses;
  {
    const MutexLock lock(heap.mutex());
    if (block.use.uses != nullptr) uses = *static_cast<StreamUses*>(block.use.uses);
  }
  Recording::Nodes frontier;
  if (uses.empty() && block.use.stream == heap.stream()) {
    const bool recorded =
        options_.cross_stream_reuse && recording.frontierOf(heap.stream(), frontier);
    const MutexLock lock(heap.mutex());
    recorded ? recording.markFree(heap, frontier) : recording.markUnknown(heap);
    return heap.release(block, tick_.load(std::memory_order_relaxed));
  }
  const bool own = block.use.stream == heap.stream();
  uses.insert(uses.begin(), block.use.stream);
  const bool recorded = std::any_of(uses.begin(), uses.end(), [&](Stream user) CISTERN_NO_TSA {
    return recording.frontierOf(user, frontier);
  });
  {
    const MutexLock lock(heap.mutex());
    (void)heap.retire(block);
  }
  if (recorded) return recording.defer({&heap, &block}, uses);
  if (own) uses.erase(uses.begin());
  settleRetired(heap, block, std::move(uses));
}

// What the capture recorded has not run: nothing waits for it. What else used the block goes on.
void CachingAllocator::settleDeferred(const Recording::Deferred& deferred) noexcept {
  const auto [heap, block] = deferred.retired;
  StreamUses others = deferred.others;
  std::erase(others, heap->stream());
  if (others.empty()) return putBack(*heap, *block);
  settleRetired(*heap, *block, std::move(others));
}

// ---- Beginning and ending ----------------------------------------------------------------------

void CachingAllocator::beginRecording(std::shared_ptr<Recording> recording) {
  Pool& pool = recording->pool();
  pool.setRecording(std::move(recording));
  for (Heap* heap : pool.heaps()) {
    const MutexLock lock(heap->mutex());
    heap->recorded = true;
  }
}

Pins CachingAllocator::endRecording(Recording& recording) {
  Pool& pool = recording.pool();
  std::vector<Recording::Deferred> waiting;
  Pins pins;
  {
    const MutexLock lock(recording.mutex());
    waiting = recording.finish();
    pins = std::move(recording.pins);
    recording.pins = {};
  }
  pool.setRecording(nullptr);
  for (Heap* heap : pool.heaps()) {
    const MutexLock lock(heap->mutex());
    heap->recorded = false;
  }
  for (const Recording::Deferred& deferred : waiting) settleDeferred(deferred);
  settle();
  return pins;
}

void CachingAllocator::unpin(Pins& pins) noexcept {
  if (!pins.pages.empty()) pages_->unpin(pins.pages);
  for (HeapSegment* segment : pins.segments) pinned_segments_.unpin(*segment);
  pins = {};
}

}  // namespace cistern
