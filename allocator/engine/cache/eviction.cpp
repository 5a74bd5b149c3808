// What a cache keeps, and what goes back to its heap for it.
#include <algorithm>

#include "allocator/engine/cache/thread_cache.hpp"

namespace cistern {

// Whether other threads use the heap's stream: a large block that one of them keeps is missing to
// the others, and what they take instead costs pages.
static bool isOthersToo(const CachedBlocks& mine) noexcept {
  Heap& heap = mine.heap();
  heap.mutex().assertHeld();
  if (heap.caches().size() < 2) return false;
  return std::ranges::any_of(heap.caches(), [&mine](const ThreadCache* cache) {
    return &cache->blocks() != &mine && cache->owner().isOpen();
  });
}

// How much the program may free before the heap is at low water; only where pages have come away
// from where they began, which is what low water is for. To the heap's layout a cached block is
// allocated; to the program it is free.
std::int64_t CachedBlocks::untilLowWater() const noexcept {
  heap_->mutex().assertHeld();
  return heap_->lowWater().until(heap_->busyBytes() - bytes());
}

// ---- What is kept -------------------------------------------------------------------------------

bool CachedBlocks::keep(Block& block, ownership::Where from, WhoFreed who) noexcept {
  if (block.granules > CacheBins::kMostGranules || heap_->gone()) return false;
  const std::size_t at = CacheBins::indexOf(block.granules);
  CacheBudget& budget = budgetOf(block.granules);
  const auto bytes = std::int64_t(block.bytes());
  if (!mayKeep(budget, block) || !becomeOf(at, block.granules)) return false;
  if (CacheBins::isShared(block.granules) && !makeSharedRoom(at, bytes)) return false;
  if (budget.left() < bytes) makeSmallRoom(bytes);
  if (!ownership::take(block, holder_, from)) return false;
  bins_[at].push(block, who.word());
  budget.add(bytes);
  // Low water is for the heap to see. Each kind may go half the way to it before it looks again.
  budget.allow(untilLowWater() / 2);
  return true;
}

// Whether it is kept at all. A block that would bring low water about is not, nor is then anything
// else.
inline bool CachedBlocks::mayKeep(CacheBudget& budget, const Block& block) noexcept {
  if (&budget == &large_ && isOthersToo(*this)) return false;
  budget.grant(&budget == &large_ ? ground_->most_large : ground_->most_small, ground_->left);
  const auto bytes = std::int64_t(block.bytes());
  if (bytes > budget.mostFor(CacheBins::isShared(block.granules))) return false;
  if (bytes < untilLowWater()) return true;
  putAllBack();
  return false;
}

// A bin that sizes share, and that for the last large block, becomes one of this size.
inline bool CachedBlocks::becomeOf(std::size_t bin, std::uint32_t granules) noexcept {
  const bool last = bin == CacheBins::kLast;
  if (!last && bins_[bin].granules == granules) return true;
  Habit& habit = last ? last_ : shared_;
  if (bins_[bin].top != nullptr) habit.noteUnused();
  if (!habit.isWorthIt()) return false;
  putBack(bin);
  bins_[bin].granules = granules;
  return true;
}

// One bin after the other goes, and the block's own last.
bool CachedBlocks::makeSharedRoom(std::size_t bin, std::int64_t bytes) noexcept {
  for (std::size_t i = CacheBins::kShared; i < CacheBins::kLast && !small_.fits(bytes, true); ++i) {
    if (++shared_hand_ == CacheBins::kLast) shared_hand_ = CacheBins::kShared;
    if (shared_hand_ != bin) putBack(shared_hand_);
  }
  if (!small_.fits(bytes, true)) putBack(bin);
  return small_.fits(bytes, true);
}

// A little more than is needed, so that the next ones find room too. (The last bin is empty by the
// time a large block comes in.)
void CachedBlocks::makeSmallRoom(std::int64_t bytes) noexcept {
  const std::int64_t enough = std::max(bytes, small_.granted() / 8);
  for (std::size_t i = 0; i < CacheBins::kLast && small_.left() < enough; ++i) {
    if (++hand_ == CacheBins::kLast) hand_ = 0;
    putBack(hand_);
  }
}

// ---- Blocks go back -----------------------------------------------------------------------------

void CachedBlocks::release(Block& block, WhoFreed who) noexcept {
  heap_->mutex().assertHeld();
  heap_->frees().note(deviceAddress(block), block.granules, who.code(),
                      who.thread() ? who.thread() : owner_);
  ownership::leaveToHeap(block, heap_->stream());
  heap_->release(block, ground_->tick.load(std::memory_order_relaxed), Heap::Freed::kFromCache);
  LowWater& low_water = heap_->lowWater();
  if (low_water.isDue(heap_->busyBytes() - bytes())) low_water.notePassed();
}

void CachedBlocks::putBack(std::size_t at) noexcept {
  CacheBin& bin = bins_[at];
  CacheBudget& budget = budgetOf(bin.granules);
  while (bin.top != nullptr) {
    Block& block = bin.pop();
    budget.remove(std::int64_t(block.bytes()));
    release(block, WhoFreed(block.use.stream));
  }
}

// give() looks at the size alone: where no large block is to be kept, the last bin is for none.
void CachedBlocks::putAllBack() noexcept {
  for (std::size_t i = CacheBins::kLast; i >= CacheBins::kShared && bytes() != 0; --i) putBack(i);
  if (isOthersToo(*this)) bins_.last().granules = 0;
  for (std::size_t i = 0; i < CacheBins::kShared && bytes() != 0; ++i) putBack(i);
  shared_ = last_ = {};
  hand_ = 0;
  shared_hand_ = CacheBins::kShared;
}

void CachedBlocks::flush() noexcept {
  putAllBack();
  small_.shut();
  large_.shut();
}

bool CachedBlocks::flushSome(SizeKind kind) noexcept {
  const bool large = kind == SizeKind::kLarge;
  if ((large ? large_ : small_).cached() == 0) return false;
  std::size_t bin = large ? CacheBins::kLast : CacheBins::kLast - 1;
  while (bins_[bin].top == nullptr) --bin;
  putBack(bin);
  return true;
}

void CachedBlocks::flushLast() noexcept {
  if (!hasLast()) return;
  last_.noteUnused();
  putBack(CacheBins::kLast);
  if (isOthersToo(*this)) bins_.last().granules = 0;
}

// ---- How much may be kept -----------------------------------------------------------------------

void CachedBlocks::noteFall() noexcept {
  const std::int64_t more = untilLowWater() / 2;
  for (CacheBudget* budget : {&small_, &large_}) {
    if (!budget->isShut()) budget->allow(more);
  }
}

void CachedBlocks::audit() const {
  std::int64_t small = 0;
  for (std::size_t i = 0; i < CacheBins::kLast; ++i) small += bins_[i].audit(holder_);
  small_.audit(small);
  large_.audit(bins_[CacheBins::kLast].audit(holder_));
}

}  // namespace cistern
