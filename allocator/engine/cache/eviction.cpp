// What a thread's cache keeps, and what goes back to its heap for it: under the heap's lock. See
// thread_cache.hpp.
#include <algorithm>

#include "allocator/base/check.hpp"
#include "allocator/engine/cache/thread_cache.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {

// `from`: where the block is, unless another thread frees it too. What the program gives back is
// counted here; what another thread has returned, that thread has counted.
bool ThreadCache::keep(Block& block, ownership::Where from, WhoFreed who) noexcept {
  if (block.granules > kMostGranules || shut_) return false;
  Bin& bin = bins_[binOf(block.granules)];
  Side& side = sideOf(block.granules);
  const std::uint64_t asked = block.use.asked;
  if (!makeRoom(bin, side, block) || !ownership::take(block, held_, from)) return false;
  link(bin, block, who.word());
  side.room -= std::int64_t(block.bytes());
  if (from == ownership::Where::kHeld)
    counters_->totals.countGiven(kindOf(block.granules), block.bytes(), asked);
  list();
  relimit(side);
  return true;
}

// Whether it is kept at all. A block that would bring low water about is not, nor is then anything
// else.
inline bool ThreadCache::mayKeep(Side& side, const Block& block) noexcept {
  if (&side == &large_ && isOthersToo()) return false;
  if (side.granted == 0) grant(side);
  const auto bytes = std::int64_t(block.bytes());
  if (bytes > mostFor(side, block)) return false;
  if (bytes < untilLowWater()) return true;
  flushBins();
  return false;
}

// A stack that sizes share, and that for the last large block, becomes one of this size.
inline bool ThreadCache::becomeOf(Bin& bin, const Side& side, const Block& block) noexcept {
  const bool last = &side == &large_;
  if (!last && bin.granules == block.granules) return true;
  Habit& habit = last ? last_habit_ : shared_habit_;
  if (bin.top != nullptr) ++habit.unused;
  if (!habit.isWorthIt()) return false;
  putBack(bin);
  bin.granules = block.granules;
  return true;
}

bool ThreadCache::makeRoom(Bin& bin, Side& side, const Block& block) noexcept {
  if (!mayKeep(side, block) || !becomeOf(bin, side, block)) return false;
  if (isShared(block) && !makeSharedRoom(bin, side, block)) return false;
  const auto bytes = std::int64_t(block.bytes());
  if (side.left() >= bytes) return true;
  // A little more than is needed, so that the next ones find room too.
  const std::int64_t enough = std::max(bytes, side.granted / 8);
  for (std::size_t i = 0; i < kBins && side.left() < enough; ++i) {
    hand_ = hand_ + 1 < kBins ? hand_ + 1 : 0;
    if (&sideOf(bins_[hand_].granules) == &side) putBack(bins_[hand_]);
  }
  return true;
}

// Beyond three quarters a cache keeps none of the sizes that share stacks: a few blocks that nobody
// asks for again would fill it, and each small one would have to make room.
std::int64_t ThreadCache::mostFor(const Side& side, const Block& block) {
  return isShared(block) ? side.granted - side.granted / 4 : side.granted;
}

// One stack after the other goes, and the block's own last.
bool ThreadCache::makeSharedRoom(Bin& bin, const Side& side, const Block& block) noexcept {
  for (std::size_t i = kSharedBin; i < kLastBin && !hasRoom(side, block); ++i) {
    shared_hand_ = shared_hand_ + 1 < kLastBin ? shared_hand_ + 1 : kSharedBin;
    if (&bins_[shared_hand_] != &bin) putBack(bins_[shared_hand_]);
  }
  if (!hasRoom(side, block)) putBack(bin);
  return hasRoom(side, block);
}

// On a stream that several threads use, a large block that one of them keeps is missing to the
// others, and what they take instead costs pages.
bool ThreadCache::isOthersToo() const noexcept {
  heap_->mutex().assertHeld();
  if (heap_->caches().size() < 2) return false;
  return std::ranges::any_of(heap_->caches(), [this](const ThreadCache* cache) {
    return cache != this && cache->isOpen();
  });
}

// Where what is kept is never what is asked for next, keeping it is wasted; but programs change,
// and now and then it is tried again.
bool ThreadCache::Habit::isWorthIt() noexcept {
  constexpr std::uint32_t kBackoff = 16;
  if (unused < kBackoff || ++passed >= kBackoff) {
    passed = 0;
    return true;
  }
  return false;
}

// ---- Blocks go back -----------------------------------------------------------------------------

void ThreadCache::putBack(Bin& bin) noexcept {
  Side& side = sideOf(bin.granules);
  while (Block* const block = bin.top) {
    bin.top = static_cast<Block*>(block->use.uses);
    side.room += std::int64_t(block->bytes());
    release(*block, WhoFreed(block->use.stream));
  }
}

// Pre: in no bin, and counted as allocated by the heap.
inline void ThreadCache::handOver(Block& block, WhoFreed who) noexcept {
  heap_->mutex().assertHeld();
  heap_->frees().note(deviceAddress(block), block.granules, who.code(),
                      who.thread() ? who.thread() : owner_number_);
  ownership::leaveToHeap(block, stream());
}

void ThreadCache::letGo(Block& block, WhoFreed who) noexcept {
  heap_->mutex().assertHeld();
  handOver(block, who);
  heap_->release(block, ground_->tick.load(std::memory_order_relaxed));
}

void ThreadCache::release(Block& block, WhoFreed who) noexcept {
  heap_->mutex().assertHeld();
  handOver(block, who);
  heap_->release(block, ground_->tick.load(std::memory_order_relaxed), Heap::Freed::kFromCache);
  if (heap_->lowWater().isDue(heap_->busyBytes() - cachedBytes())) heap_->lowWater().notePassed();
}

void ThreadCache::flush() noexcept {
  takeRemoteFrees();
  flushBins();
  shutLimits();
}

void ThreadCache::flushBins() noexcept {
  flushShared();
  for (std::size_t i = 0; i < kSharedBin && small_.cached() != 0; ++i) putBack(bins_[i]);
  forgetHabits();
}

bool ThreadCache::flushSome(SizeKind kind) noexcept {
  const Side& side = kind == SizeKind::kSmall ? small_ : large_;
  if (side.cached() == 0) return false;
  for (std::size_t i = kBins; i-- > 0;) {
    if (bins_[i].top == nullptr || &sideOf(bins_[i].granules) != &side) continue;
    putBack(bins_[i]);
    break;
  }
  return true;
}

void ThreadCache::flushLast() noexcept {
  if (!hasLast()) return;
  ++last_habit_.unused;
  putBack(bins_[kLastBin]);
  if (isOthersToo()) bins_[kLastBin].granules = 0;
}

// giveAny() looks at the size alone: where no large block is to be kept, the bin is for none.
void ThreadCache::flushShared() noexcept {
  if (cachedBytes() != 0) {
    for (std::size_t i = kLastBin; i >= kSharedBin; --i) putBack(bins_[i]);
  }
  if (isOthersToo()) bins_[kLastBin].granules = 0;
}

// ---- How much may be kept before the heap is asked ----------------------------------------------

// Low water is for the heap to see: who would bring it about goes there. Each side may go half the
// way to it before it looks again.
void ThreadCache::relimit(Side& side) noexcept { relimit(side, untilLowWater() / 2); }

void ThreadCache::relimit(Side& side, std::int64_t more) noexcept {
  side.setLimit(std::min(side.granted, side.cached() + more));
}

void ThreadCache::noteFall() noexcept {
  const std::int64_t more = untilLowWater() / 2;
  for (Side* side : {&small_, &large_}) {
    if (side->limit >= 0) relimit(*side, more);
  }
}

// How much the program may free before its heap holds as little as it ever does; only where pages
// have come away from where they began, which is what low water is for.
std::int64_t ThreadCache::untilLowWater() const noexcept {
  heap_->mutex().assertHeld();
  return heap_->lowWater().until(heap_->busyBytes() - cachedBytes());
}

}  // namespace cistern
