// Memory of other streams: blocks that wait for work elsewhere, and free memory that one stream
// leaves and another could use.
//
// Two ways to use another heap's free block. A wholly free segment is adopted: it moves, and is the
// new heap's own from then on. Part of a segment is taken as a guest: the block stays the owner's,
// and its free waits for the guest stream as a recorded use would.
#include "allocator/base/check.hpp"
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

void CachingAllocator::settleRetired(Heap& heap, Block& block, StreamUses uses) noexcept {
  if (!pending_.add({&heap, &block}, uses)) return;
  const MutexLock lock(heap.mutex());
  heap.release(block, tick_.load(std::memory_order_relaxed));
}

// Releases the blocks whose last use is complete. True if there were any.
bool CachingAllocator::pollPending(bool wait) {
  const std::vector<PendingFrees::Retired> ready = pending_.poll(wait);
  for (const auto& [heap, block] : ready) {
    const MutexLock lock(heap->mutex());
    heap->release(*block, tick_.load(std::memory_order_relaxed));
  }
  if (!ready.empty()) settle();
  return !ready.empty();
}

// Learns how far the heap's stream has come: records an event if something was freed since the last
// one and none is under way, and asks the one that is. One thread at a time; others pass.
void CachingAllocator::refreshCompletion(Heap& heap) {
  Heap::Completion seen;
  {
    const MutexLock lock(heap.mutex());
    Heap::Completion& c = heap.completion;
    if (c.busy || (!c.under_way && !c.freed)) return;
    c.busy = true;
    if (!c.under_way) {
      c.marked = heap.epoch++;
      c.freed = false;
    }
    seen = c;
  }
  const RelaxedCaptureMode relaxed(device_);
  if (!seen.under_way) {
    const Result<Event> event = events_.take();
    if (event.ok()) seen.event = event.value();
    seen.under_way = event.ok() && device_.recordEvent(seen.event, heap.stream()).ok();
    if (event.ok() && !seen.under_way) events_.give(seen.event);
  }
  bool complete = false;
  if (seen.under_way) {
    const Result<bool> done = device_.queryEvent(seen.event);
    complete = done.ok() && done.value();
  }
  if (complete) events_.give(seen.event);
  const MutexLock lock(heap.mutex());
  Heap::Completion& c = heap.completion;
  if (complete) c.completed = seen.marked;
  if (!seen.under_way) c.freed = true;  // it could not be recorded; the next one covers it too
  c.under_way = seen.under_way && !complete;
  c.event = seen.event;
  c.busy = false;
}

Block* CachingAllocator::fromOtherHeaps(Heap& heap, const Request& request) {
  if (!options_.cross_stream_reuse) return nullptr;
  for (Heap* owner : heaps_.all()) {
    if (owner == &heap) continue;
    {
      const MutexLock lock(owner->mutex());
      if (!owner->layout(request.kind).freeBlocks().bestFit(request.grains)) continue;
    }
    refreshCompletion(*owner);
    if (Block* block = takeFrom(*owner, heap, request, true)) return block;
  }
  return nullptr;
}

// Takes memory of another heap that queued work may still use, and orders this stream's further
// work after it on the device. Nobody waits on the host.
Block* CachingAllocator::fromOtherHeapsInOrder(Heap& heap, const Request& request) {
  if (!options_.cross_stream_reuse) return nullptr;
  for (Heap* owner : heaps_.all()) {
    if (owner == &heap) continue;
    Block* block = takeFrom(*owner, heap, request, false);
    if (block == nullptr) continue;
    if (orderAfter(request.stream, owner->stream())) return block;
    Heap& holder = *segmentOf(*block).heap.load(std::memory_order_relaxed);
    const MutexLock lock(holder.mutex());
    holder.release(*block, tick_.load(std::memory_order_relaxed));
  }
  return nullptr;
}

bool CachingAllocator::orderAfter(Stream later, Stream earlier) {
  const Result<Event> event = events_.take();
  if (!event) return false;
  const bool ordered = device_.recordEvent(event.value(), earlier).ok() &&
                       device_.waitEvent(later, event.value()).ok();
  events_.give(event.value());
  return ordered;
}

Block* CachingAllocator::takeFrom(Heap& owner, Heap& heap, const Request& request,
                                  bool completed_only) {
  HeapSegment* whole = nullptr;
  {
    const MutexLock lock(owner.mutex());
    Layout& layout = owner.layout(request.kind);
    const std::uint32_t safe = completed_only ? owner.completion.completed : UINT32_MAX;
    Block* block = layout.freeBlocks().bestFitIf(request.grains, [&](const Block& b) {
      return b.epoch <= safe && layout.serves(b, request.grains);
    });
    if (block == nullptr) return nullptr;
    if (!block->segment->whollyFree()) return owner.allocateFrom(*block, request);
    whole = &segmentOf(*block);
    owner.remove(*whole);
  }
  return adopt(*whole, heap, request);
}

Block* CachingAllocator::adopt(HeapSegment& segment, Heap& heap, const Request& request) {
  const MutexLock lock(heap.mutex());
  heap.add(segment, false);
  return heap.allocate(request);
}

}  // namespace cistern
