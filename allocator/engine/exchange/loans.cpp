#include <algorithm>
#include <mutex>

#include "allocator/engine/exchange/exchange.hpp"

namespace cistern {

bool streamsAreIdle(Engine& engine) {
  if (engine.pending.waiting() > 0) return false;
  const RelaxedCaptureMode relaxed(engine.device);
  return std::ranges::all_of(
      engine.heaps.all(), [&](const Heap* heap) { return engine.progress.idle(heap->stream()); });
}

// ---- What is complete ---------------------------------------------------------------------------

namespace {

bool mayLend(const Heap& owner, const Heap& heap) {
  return &owner != &heap && &owner.pool() == &heap.pool() && owner.overflow() == heap.overflow();
}

// Whole segments of a pool that nobody uses any more, where both pools' are alike.
bool mayInherit(const Heap& owner, const Heap& heap) {
  const Pool &from = owner.pool(), &to = heap.pool();
  return from.stage() == Pool::Stage::kDraining && !owner.onPages() && !heap.onPages() &&
         &from.rules() == &to.rules() && !from.source() && !to.source();
}

// The best free block of the owner's, of what is looked at, that was freed in one of the epochs.
Block* fitting(Heap& owner, const Request& request, Extent extent, Epochs epochs)
    CISTERN_REQUIRES(owner.mutex()) {
  const bool parts = extent == Extent::kParts;
  return bestFree(owner, request, epochs,
                  [=](const Block& block) { return parts || block.segment->whollyFree(); });
}

// A block of the owner's whose last use is complete. A whole segment moves: nobody sees it in
// neither heap, or in both. Either heap may have another pool by now.
Block* takeFrom(Engine& engine, Heap& owner, Heap& heap, const Request& request, Extent extent) {
  const MutexLock holding_two(engine.heaps_mutex);
  std::vector<Heap*> two{&owner, &heap};
  const HeapLocks locks(engine.heaps_mutex, two);
  owner.mutex().assertHeld();
  heap.mutex().assertHeld();
  const Epochs complete = Epochs::upTo(owner.completion().completed());
  Block* const block = fitting(owner, request, extent, complete);
  if (block == nullptr) return nullptr;
  const bool whole = !owner.onPages() && block->segment->whollyFree();
  const bool inherits = whole && mayInherit(owner, heap) && !engine.segments.isHeld(*block);
  if (!mayLend(owner, heap) && !inherits) return nullptr;
  if (!whole) return owner.allocateFrom(*block, request);
  HeapSegment& segment = segmentOf(*block);
  engine.segments.noteMoved(segment, heap);
  owner.remove(segment, false);
  try {
    heap.add(segment, Heap::From::kOtherHeap);
  } catch (...) {
    owner.add(segment, Heap::From::kOtherHeap);  // it has just left: cannot fail
    throw;
  }
  return heap.allocateFrom(*segment.first, request);
}

// The next heaps that have what fits. They share a mark.
std::vector<Heap*> nextOwners(Engine& engine, Heap& heap, const Request& request, Extent extent,
                              HeapTable::Search& search) {
  const bool parts = extent == Extent::kParts;
  std::vector<Heap*> owners;
  while (owners.size() < StreamProgress::heapsAtOnce(parts)) {
    Heap* const owner =
        parts ? engine.heaps.at(search.number++) : engine.heaps.nextOffering(search);
    if (owner == nullptr) break;
    // Only a capture inherits segments. Other requests give them back and make new ones.
    const bool inherits = request.capture && !parts && mayInherit(*owner, heap);
    if (!mayLend(*owner, heap) && !inherits) continue;
    const MutexLock lock(owner->mutex());
    const bool fits = fitting(*owner, request, extent, {}) != nullptr;
    fits ? owners.push_back(owner) : owner->withdrawIfEmpty();
  }
  return owners;
}

}  // namespace

// Before a heap grows it adopts idle segments, but takes no part of one. A loan goes back when it
// is freed, so a heap that lived on others' memory would miss every time. Parts may lie free in any
// heap; whole segments only in those that offer something.
Block* takeComplete(Engine& engine, Heap& heap, const Request& request, Extent extent) {
  if (!engine.options.reusesAcrossStreams()) return nullptr;
  const bool all = extent == Extent::kParts;
  std::size_t asked = all ? StreamProgress::kAll : StreamProgress::kFew, looked = 0;
  const auto from = request.capture ? HeapTable::From::kGivers : HeapTable::From::kOwn;
  for (HeapTable::Search search{heap.pool(), from};;) {
    const std::vector<Heap*> owners = nextOwners(engine, heap, request, extent, search);
    looked += owners.size();
    if (owners.empty() || (!all && looked > StreamProgress::kMostHeaps)) return nullptr;
    engine.progress.seek(owners, asked);
    if (!all) asked = 1;  // later requests ask the other streams; 0 would make no mark at all
    for (Heap* owner : owners) {
      if (Block* block = takeFrom(engine, *owner, heap, request, extent)) return block;
    }
  }
}

// ---- What queued work may still use -------------------------------------------------------------

// The best block that may be lent, of those that were freed in one of the epochs. Not what a
// capture under way has freed: it comes back as memory that no part of the capture has used.
static Block* lendable(Heap& owner, const Heap& heap, const Request& request, Epochs epochs)
    CISTERN_REQUIRES(owner.mutex()) {
  const bool lends = mayLend(owner, heap) && owner.completion().captured() == 0;
  return lends ? bestFree(owner, request, epochs) : nullptr;
}

// Nothing is taken, and counted, before it is safe. If the streams cannot be ordered for one
// owner's memory, they cannot for any other's.
Block* loanInOrder(Engine& engine, Heap& heap, const Request& request) {
  if (!engine.options.reusesAcrossStreams()) return nullptr;
  for (Heap* owner : engine.heaps.all()) {
    std::uint64_t until = 0;
    {
      const MutexLock lock(owner->mutex());
      if (lendable(*owner, heap, request, {}) == nullptr) continue;
      until = owner->endedEpoch();  // what is freed from now on does not count
    }
    if (!engine.progress.answers(owner->stream())) continue;
    if (!engine.progress.orderAfterAll(request.stream)) return nullptr;
    const MutexLock lock(owner->mutex());
    Block* const free = lendable(*owner, heap, request, Epochs::upTo(until));
    if (free != nullptr) return owner->allocateFrom(*free, request);
  }
  return nullptr;
}

// ---- Pools that lend ----------------------------------------------------------------------------

// Pages are held under the backing's lock. By then the heap may have another pool.
Block* takeFromLenders(Engine& engine, Heap& heap, const Request& request) {
  if (!engine.pools.anyLenders(request)) return nullptr;
  Request lent = request;
  lent.part = Request::kLent;
  std::vector<Heap*> lenders = engine.heaps.all();
  std::erase_if(lenders,
                [](const Heap* owner) { return owner->overflow() || !owner->pool().lendsNow(); });
  engine.progress.seek(lenders, StreamProgress::kAll);
  for (Heap* owner : lenders) {
    const MutexLock still(engine.pages.mutex());
    const MutexLock lock(owner->mutex());
    if (!owner->pool().lendsNow()) continue;
    const bool own = owner->stream() == request.stream;
    const Epochs epochs = own ? Epochs{} : Epochs::upTo(owner->completion().completed());
    Block* const free = bestFree(*owner, request, epochs,
                                 [&](const Block& block) { return !engine.isHeld(block); });
    if (free != nullptr) return owner->allocateFrom(*free, lent);
  }
  return request.pool->onPages() ? engine.pages.place(heap, request, PagesFrom::kLenders) : nullptr;
}

}  // namespace cistern
