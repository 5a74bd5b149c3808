// Memory of other streams: blocks that wait for work elsewhere, and free memory that one stream
// leaves and another could use.
//
// Two ways to use another heap's free block. A wholly free segment whose last use is complete is
// adopted: it moves, and is the new heap's own from then on. Otherwise the block is a loan: it
// stays the owner's, and its free waits for the stream it is lent to as a recorded use would.
#include "allocator/base/process.hpp"
#include "allocator/engine/caching_allocator.hpp"
#include "allocator/engine/heap_locks.hpp"

namespace cistern {

void CachingAllocator::deferFree(Heap& heap, Block& block, const StreamUses& uses,
                                 bool captured) noexcept {
  if (!driverMayBeCalled()) return;  // at exit nobody will use it again
  const bool own = uses.contains(heap.stream());
  pending_.add({&heap, &block, own, captured}, uses);
}

// While a capture into the pool is under way, only what is complete comes back (recorded.cpp): a
// block whose own stream's order was to cover the rest waits for that stream too.
void CachingAllocator::putBack(const PendingFrees::Pending& pending) noexcept {
  Heap& heap = *pending.heap;
  Block& block = *pending.block;
  bool low_water = false, too_early = false;
  {
    const MutexLock lock(heap.mutex());
    const std::uint64_t tick = tick_.load(std::memory_order_relaxed);
    too_early = heap.completion().recorded() != 0 && !pending.own;
    if (too_early) {
      if (block.state() == BlockState::kAllocated) (void)heap.setPending(block);  // a loan's
    } else {
      const bool for_all = heap.completion().recorded() != 0 && !pending.captured;
      heap.release(block, tick, for_all ? Heap::Freed::kComplete : Heap::Freed::kNow);
      low_water = heap.lowWater().isDue(heap.busyBytes());
    }
  }
  if (too_early) return deferFree(heap, block, {heap.stream()}, pending.captured);
  afterFree(heap, low_water);
}

// At exit there is nobody left who would ask it.
void CachingAllocator::forgetStream(Stream stream) {
  if (stream == Stream{}) throw InvalidArgument("the default stream cannot be forgotten: it stays");
  if (driverMayBeCalled()) streams_.unregisterStream(stream);
}

// Releases the blocks whose last use is complete. True if there were any.
bool CachingAllocator::pollPending() noexcept { return pending_.poll(); }

// Whether no stream that this allocator knows has work queued.
bool CachingAllocator::streamsAreIdle() {
  if (pending_.waiting() > 0) return false;
  const RelaxedCaptureMode relaxed(device_);
  for (const Heap* heap : heaps_.all()) {
    if (!progress_.idle(heap->stream())) return false;
  }
  return true;
}

// Before a heap grows it adopts idle segments, but takes no part of one: what is lent goes back
// when it is freed, so that a heap which lived on others' would miss every time.
Block* CachingAllocator::fromOtherHeaps(Heap& heap, const Request& request, Reach reach) {
  if (!options_.reusesAcrossStreams()) return nullptr;
  // Parts may lie free in any heap.
  const std::vector<Heap*> all = reach == Reach::kPartsToo ? heaps_.all() : std::vector<Heap*>();
  std::size_t next = 0;
  const auto following = [&]() -> Heap* {
    if (reach == Reach::kIdleSegments) return heaps_.offering().next(next);
    return next < all.size() ? all[next++] : nullptr;
  };
  while (Heap* const owner = following()) {
    const bool whole = request.recording && reach == Reach::kIdleSegments &&
                       mayInherit(*owner, heap);  // others give it back and grow
    if (!mayLend(*owner, heap) && !whole) continue;
    {
      const MutexLock lock(owner->mutex());
      if (fitting(*owner, request, reach, {}) == nullptr) {
        withdrawIfEmpty(*owner);
        continue;
      }
    }
    progress_.seek(*owner);
    if (Block* block = takeCompleted(*owner, heap, request, reach)) return block;
  }
  return nullptr;
}

// Whole segments of a pool that nobody uses any more, where both pools' are alike.
bool CachingAllocator::mayInherit(const Heap& owner, const Heap& heap) {
  const Pool &from = owner.pool(), &to = heap.pool();
  return from.stage() == Pool::Stage::kDraining && !owner.onPages() && !heap.onPages() &&
         &from.rules() == &to.rules() && !from.source() && !to.source();
}

// A block of the owner's whose last use is complete.
Block* CachingAllocator::takeCompleted(Heap& owner, Heap& heap, const Request& request,
                                       Reach reach) {
  HeapSegment* whole = nullptr;
  {
    const MutexLock lock(owner.mutex());
    Block* block = fitting(owner, request, reach, Epochs::upTo(owner.completion().completed()));
    if (block == nullptr) return nullptr;
    if (owner.onPages() || !block->segment->whollyFree()) {
      if (!mayLend(owner, heap)) return nullptr;  // it has another pool since
      return owner.allocateFrom(*block, request);
    }
    whole = &segmentOf(*block);
  }
  return adopt(*whole, owner, heap, request);
}

// The best free block of the owner's that was freed in one of the epochs.
Block* CachingAllocator::fitting(Heap& owner, const Request& request, Reach reach, Epochs epochs) {
  Layout& layout = owner.layout(request.kind);
  layout.listLeftOut();
  return layout.freeBlocks().bestFitIf(request.granules, [&](const Block& b) {
    if (reach == Reach::kIdleSegments && !b.segment->whollyFree()) return false;
    return epochs.contain(b.epoch) && layout.serves(b, request.granules);
  });
}

// Moves a segment, if it is still the owner's, wholly free and complete, and allocates from it.
// Both heaps' locks are held: nobody sees the segment in neither, or in both.
Block* CachingAllocator::adopt(HeapSegment& segment, Heap& owner, Heap& heap,
                               const Request& request) {
  std::vector<Heap*> two{&owner, &heap};
  const MutexLock holding_two(heaps_mutex_);
  const HeapLocks both(heaps_mutex_, two);
  owner.mutex().assertHeld();
  heap.mutex().assertHeld();
  const bool may =
      mayLend(owner, heap) || (mayInherit(owner, heap) && !pinned_segments_.pinned(segment));
  const bool still = may && segment.heap.load(std::memory_order_relaxed) == &owner &&
                     segment.kind == request.kind && segment.whollyFree() &&
                     segment.first->epoch <= owner.completion().completed() &&
                     owner.layout(request.kind).serves(*segment.first, request.granules);
  if (!still) return nullptr;
  owner.remove(segment, false);
  try {
    heap.add(segment, Heap::From::kOtherHeap);
  } catch (...) {
    owner.add(segment, Heap::From::kOtherHeap);  // it has just left: cannot fail
    throw;
  }
  return heap.allocateFrom(*segment.first, request);
}

// Takes a block of another heap that queued work may still use, as a loan, once `made_safe` has
// seen to it that this request's stream comes after that work.
template <class MakeSafe>
Block* CachingAllocator::loan(Heap& heap, const Request& request, MakeSafe made_safe) {
  if (!options_.reusesAcrossStreams()) return nullptr;
  for (Heap* owner : heaps_.all()) {
    if (!mayLend(*owner, heap)) continue;
    Block* block = nullptr;
    {
      const MutexLock lock(owner->mutex());
      const bool still = mayLend(*owner, heap);
      Block* free = still ? fitting(*owner, request, Reach::kPartsToo, {}) : nullptr;
      if (free != nullptr) block = owner->allocateFrom(*free, request);
    }
    if (block == nullptr) continue;
    if (made_safe(owner->stream())) return block;
    putBack({owner, block, false, true});
  }
  return nullptr;
}

// Orders this stream's further work after the owner's, on the device. Nobody waits on the host.
Block* CachingAllocator::loanInOrder(Heap& heap, const Request& request) {
  return loan(heap, request,
              [&](Stream owner) { return progress_.orderAfter(request.stream, owner); });
}

// What the stream of a heap cannot be asked about, because it was destroyed, is complete when the
// whole device is.
Block* CachingAllocator::loanWhenIdle(Heap& heap, const Request& request) {
  return loan(heap, request, [&](Stream) {
    const RelaxedCaptureMode relaxed(device_);
    num_sync_all_streams_.fetch_add(1, std::memory_order_relaxed);
    return device_.synchronizeDevice().ok();
  });
}

}  // namespace cistern
