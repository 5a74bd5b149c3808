// The blocks held in a pool, and setting it back to those that it held at an earlier moment: all of
// it, or nothing. Pages that lay elsewhere then come back, as far as they are mapped there still,
// as those are that a graph has captured.
//
//   look        what is to be freed and made, whether all of that memory is the pool's still, and
//               which streams have to come after which                       (restoration.cpp)
//   ask, order  where streams have to; then look again, as others go on meanwhile
//   carry out   under the same locks as the look that found nothing amiss
#include <algorithm>

#include "allocator/engine/restoration.hpp"

namespace cistern {
namespace {

// What liveBlocks says is in order, in grains, and each within the address space.
bool sound(const std::vector<LiveBlock>& blocks) {
  Address free_from = 0;
  for (const LiveBlock& block : blocks) {
    const bool whole = block.address % kGrain == 0 && block.bytes % kGrain == 0;
    if (!whole || block.address < free_from || block.requested == 0) return false;
    if (block.requested > block.bytes || block.bytes > kLargestRequest) return false;
    free_from = block.address + block.bytes;
  }
  return free_from < Address{1} << 57;
}

std::vector<void*> pointersTo(const std::vector<LiveBlock>& blocks) {
  std::vector<void*> pointers;
  for (const LiveBlock& block : blocks) pointers.push_back(toPointer(block.address));
  return pointers;
}

}  // namespace

std::vector<LiveBlock> CachingAllocator::liveBlocks(const Pool& pool) const {
  std::vector<LiveBlock> live;
  for (Heap* heap : heapsOf(pool)) {
    const MutexLock lock(heap->mutex());
    const HeldCaches held_still(*heap);
    Restoration::forEachHeld(*heap,
                             [&](const LiveBlock& block, const Block&) { live.push_back(block); });
  }
  std::ranges::sort(live, {}, &LiveBlock::address);
  return live;
}

// What other streams have used until now may be complete, and is asked first.
void CachingAllocator::restore(Pool& pool, const std::vector<LiveBlock>& wanted,
                               std::vector<void*>& freed, std::vector<void*>& made) {
  if (!sound(wanted)) throw PoolError("cannot be set back: its blocks are not as they were said");
  pollPending();
  Restoration restoration(*this, pool, wanted);
  restoration.run();
  for (const Address address : restoration.usedElsewhere()) free(toPointer(address));
  freed = restoration.freed();
  made = restoration.made();
}

void CachingAllocator::Restoration::run() CISTERN_NO_TSA {
  std::unique_lock<Mutex> backing;
  if (pool_.onPages()) backing = std::unique_lock(allocator_.pages_->mutex());
  findForgotten();
  if (tryNow()) return;
  for (const Need& need : needs_) allocator_.progress_.refresh(*need.heap);
  if (tryNow()) return;
  for (const Need& need : needs_) order(need);
  if (!tryNow()) refuse(*needs_.front().wanted, kInUse);
}

// Whoever holds several heaps' locks holds heaps_mutex_ first.
bool CachingAllocator::Restoration::tryNow() CISTERN_NO_TSA {
  const MutexLock holding_several(allocator_.heaps_mutex_);
  heaps_ = pool_.heaps();
  std::ranges::sort(heaps_);
  const HeldHeaps held_still(heaps_);
  look();
  if (!needs_.empty()) return false;
  prepare();
  carryOut();
  return true;
}

// Everything that the earlier stream had queued when its epoch ended: what is freed meanwhile waits
// for another look.
void CachingAllocator::Restoration::order(const Need& need) {
  Heap& heap = *need.heap;
  EpochMark until;
  {
    const MutexLock lock(heap.mutex());
    until = heap.endedEpoch();
  }
  const RelaxedCaptureMode relaxed(allocator_.device_);
  const Stream earlier = heap.stream();
  StreamProgress& progress = allocator_.progress_;
  if (progress.idle(earlier) || progress.orderAfter(need.later, earlier))
    ordered_.push_back({&heap, need.later, until});
}

// ---- Carrying out ------------------------------------------------------------------------------

// All that may fail comes before anything changes.
void CachingAllocator::Restoration::prepare() CISTERN_NO_TSA {
  used_elsewhere_.reserve(leaving_.size());
  freed_pointers_ = pointersTo(freed_);
  made_pointers_ = pointersTo(made_);
  comeback_->prepare();
  for (const Making& making : making_) {
    unsigned& prepared = prepared_[{making.heap, making.segment->kind}];
    prepared += 2;
    making.heap->layout(making.segment->kind).prepareHoles(prepared + 2 * comeback_->count());
  }
}

void CachingAllocator::Restoration::carryOut() noexcept CISTERN_NO_TSA {
  for (const Leaving& leaving : leaving_) letGo(*leaving.heap, *leaving.block);
  if (pool_.onPages()) allocator_.pages_->bring(*comeback_);
  for (const Making& making : making_) make(making);
}

// What other streams use is freed as ever, once the locks are given up.
void CachingAllocator::Restoration::letGo(Heap& heap, Block& block) noexcept CISTERN_NO_TSA {
  if (!ownAlone(heap, block)) return used_elsewhere_.push_back(deviceAddress(block));
  heap.frees.note(deviceAddress(block), block.grains, nullptr, threadNumber());
  heap.release(block, allocator_.tick_.load(std::memory_order_relaxed));
}

void CachingAllocator::Restoration::make(const Making& making) noexcept CISTERN_NO_TSA {
  const LiveBlock& block = *making.wanted;
  const Address place = making.segment->placeOf(block.address);
  Block* const free = Layout::covering(*making.segment, place);
  CISTERN_CHECK(free && free->isFree() && place + block.bytes <= free->end());
  Request request;
  request.bytes = block.requested;
  request.grains = std::uint32_t(block.bytes >> kGrainShift);
  request.kind = making.segment->kind;
  request.stream = block.stream;
  request.pool = &pool_;
  making.heap->allocateAt(*free, place, request);
}

}  // namespace cistern
