#include "allocator/engine/streams/cross_stream.hpp"

#include "allocator/base/process.hpp"
#include "allocator/engine/heap/heap_locks.hpp"

namespace cistern {
namespace {

bool mayLend(const Heap& owner, const Heap& heap) {
  return &owner != &heap && &owner.pool() == &heap.pool();
}

// Whole segments of a pool that nobody uses any more, where both pools' are alike.
bool mayInherit(const Heap& owner, const Heap& heap) {
  const Pool &from = owner.pool(), &to = heap.pool();
  return from.stage() == Pool::Stage::kDraining && !owner.onPages() && !heap.onPages() &&
         &from.rules() == &to.rules() && !from.source() && !to.source();
}

// The best free block of the owner's that was freed in one of the epochs.
Block* fitting(Heap& owner, const Request& request, bool parts, Epochs epochs)
    CISTERN_REQUIRES(owner.mutex()) {
  return owner.layout(request.kind).bestFitIf(request.granules, [&](const Block& b) {
    return (parts || b.segment->whollyFree()) && epochs.contain(b.epoch);
  });
}

// A block that others use is the heap's to look after. False when somebody frees it meanwhile.
bool noteUse(const Heap& heap, Block& block, Stream stream) {
  if (stream == heap.streamOf(block)) return true;
  const std::uint32_t holder = ownership::load(block);
  if (ownership::isOwned(holder)) {
    if (ownership::whereIs(holder) != ownership::Where::kHeld) return false;
    if (!ownership::change(block, holder, ownership::moved(holder, ownership::Where::kRemoteFreed)))
      return false;
    ownership::leaveToHeap(block, heap.stream());
  }
  auto* uses = static_cast<StreamUses*>(block.use.uses);
  if (uses == nullptr) block.use.uses = uses = new StreamUses;
  uses->note(stream);
  return true;
}

}  // namespace

CrossStream::CrossStream(Core& core, Flusher& flusher)
    : core_(core),
      flusher_(flusher),
      pending_(core.device, core.events, core.streams,
               [this](const PendingFrees::Pending& pending) { putBack(pending); }) {}

// ---- Blocks that wait ---------------------------------------------------------------------------

bool CrossStream::record(Address address, Stream stream) {
  const auto [segment, heap] = core_.locate(address);
  if (heap == nullptr) return false;
  const MutexLock lock(heap->mutex());
  Block* const block = heap->find(*segment, address);
  return block != nullptr && noteUse(*heap, *block, stream);
}

void CrossStream::deferFree(Heap& heap, Block& block, const StreamUses& uses,
                            bool captured) noexcept {
  if (!driverMayBeCalled()) return;  // at exit nobody will use it again
  const bool own = uses.contains(heap.stream());
  pending_.add({&heap, &block, own, captured}, uses);
}

// During a capture into the pool a block comes back only when its own stream is complete as well.
// If nobody has waited for that stream, the block waits again.
void CrossStream::putBack(const PendingFrees::Pending& pending) noexcept {
  Heap& heap = *pending.heap;
  Block& block = *pending.block;
  Heap::Due due;
  bool too_early = false;
  {
    const MutexLock lock(heap.mutex());
    too_early = heap.completion().recorded() != 0 && !pending.own;
    if (too_early) {
      if (block.state() == BlockState::kAllocated) (void)heap.setPending(block);  // a loan's
    } else {
      const bool for_all = heap.completion().recorded() != 0 && !pending.captured;
      heap.release(block, core_.now(), for_all ? Heap::Freed::kComplete : Heap::Freed::kNow);
      due = heap.dueAfterFree();
    }
  }
  too_early ? deferFree(heap, block, {heap.stream()}, pending.captured)
            : flusher_.afterFree(heap, due);
}

bool CrossStream::streamsAreIdle() {
  if (pending_.waiting() > 0) return false;
  const RelaxedCaptureMode relaxed(core_.device);
  for (const Heap* heap : core_.heaps.all()) {
    if (!core_.progress.idle(heap->stream())) return false;
  }
  return true;
}

// ---- What is complete ---------------------------------------------------------------------------

// Parts may lie free in any heap; whole segments only in those that offer something.
Heap* CrossStream::nextOwner(std::size_t& next, const std::vector<Heap*>& all, bool parts) {
  if (!parts) return core_.heaps.offering().next(next);
  return next < all.size() ? all[next++] : nullptr;
}

// Before a heap grows it adopts idle segments, but takes no part of one: what is lent goes back
// when it is freed, so that a heap which lived on others' would miss every time.
Block* CrossStream::takeComplete(Heap& heap, const Request& request, bool parts) {
  if (!core_.options.reusesAcrossStreams()) return nullptr;
  const std::vector<Heap*> all = parts ? core_.heaps.all() : std::vector<Heap*>();
  std::size_t next = 0;
  while (Heap* const owner = nextOwner(next, all, parts)) {
    // Only a capture inherits segments. Other requests give them back and make new ones.
    const bool inherits = request.recording && !parts && mayInherit(*owner, heap);
    if (!mayLend(*owner, heap) && !inherits) continue;
    {
      const MutexLock lock(owner->mutex());
      if (fitting(*owner, request, parts, {}) == nullptr) {
        withdrawIfEmpty(*owner);
        continue;
      }
    }
    core_.progress.seek(*owner);
    if (Block* block = takeFrom(*owner, heap, request, parts)) return block;
  }
  return nullptr;
}

// A block of the owner's whose last use is complete.
Block* CrossStream::takeFrom(Heap& owner, Heap& heap, const Request& request, bool parts) {
  HeapSegment* whole = nullptr;
  {
    const MutexLock lock(owner.mutex());
    Block* block = fitting(owner, request, parts, Epochs::upTo(owner.completion().completed()));
    if (block == nullptr) return nullptr;
    if (owner.onPages() || !block->segment->whollyFree()) {
      if (!mayLend(owner, heap)) return nullptr;  // it has another pool since
      return owner.allocateFrom(*block, request);
    }
    whole = &segmentOf(*block);
  }
  return adopt(*whole, owner, heap, request);
}

bool CrossStream::mayAdopt(const Heap& owner, const Heap& heap, const HeapSegment& segment) const {
  if (segment.heap.load(std::memory_order_relaxed) != &owner) return false;
  return mayLend(owner, heap) ||
         (mayInherit(owner, heap) && !core_.segments.pinned(*segment.first));
}

// Moves a segment, if it is still the owner's, wholly free and complete, and allocates from it.
// Nobody sees the segment in neither heap, or in both.
Block* CrossStream::adopt(HeapSegment& segment, Heap& owner, Heap& heap, const Request& request) {
  const MutexLock holding_two(core_.heaps_mutex);
  std::vector<Heap*> two{&owner, &heap};
  const HeapLocks locks(core_.heaps_mutex, two);
  owner.mutex().assertHeld();
  heap.mutex().assertHeld();
  const bool still = mayAdopt(owner, heap, segment) && segment.kind == request.kind &&
                     segment.whollyFree() &&
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

// ---- What queued work may still use -------------------------------------------------------------

// Takes a block that queued work may still use once `make_safe` has seen to it that this request's
// stream comes after that work. Not what a capture under way has freed: it comes back as memory
// that no part of the capture has used.
template <class MakeSafe>
Block* CrossStream::loan(Heap& heap, const Request& request, MakeSafe make_safe) {
  if (!core_.options.reusesAcrossStreams()) return nullptr;
  for (Heap* owner : core_.heaps.all()) {
    if (!mayLend(*owner, heap)) continue;
    Block* block = nullptr;
    {
      const MutexLock lock(owner->mutex());
      const bool still = mayLend(*owner, heap) && owner->completion().recorded() == 0;
      Block* free = still ? fitting(*owner, request, true, {}) : nullptr;
      if (free != nullptr) block = owner->allocateFrom(*free, request);
    }
    if (block == nullptr) continue;
    if (make_safe(owner->stream())) return block;
    putBack({.heap = owner, .block = block, .own = false, .captured = true});
  }
  return nullptr;
}

Block* CrossStream::loanInOrder(Heap& heap, const Request& request) {
  return loan(heap, request,
              [&](Stream owner) { return core_.progress.orderAfter(request.stream, owner); });
}

Block* CrossStream::loanWhenIdle(Heap& heap, const Request& request) {
  return loan(heap, request, [&](Stream) {
    const RelaxedCaptureMode relaxed(core_.device);
    core_.waits.fetch_add(1, std::memory_order_relaxed);
    return core_.device.synchronizeDevice().ok();
  });
}

}  // namespace cistern
