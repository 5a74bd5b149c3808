// Decides which blocks a cache keeps, and which go back to its heap for them.
#include <algorithm>
#include <new>
#include <utility>

#include "allocator/engine/cache/thread_cache.hpp"

namespace cistern {
namespace {

// Whether other threads use the heap's stream. A large block that one of them keeps is missing to
// the others, and what they take instead costs pages.
bool areOthersHere(const CachedBlocks& mine) noexcept {
  Heap& heap = mine.heap();
  heap.mutex().assertHeld();
  return std::ranges::any_of(heap.caches(), [&mine](const ThreadCache* cache) {
    return &cache->blocks() != &mine && cache->isOpen();
  });
}

}  // namespace

constinit CachedBlocks::Stacks CachedBlocks::kNoStacks;

// How much the program may free before the heap is at low water. This matters only if pages have
// come away from where they began, which is what low water is for. The heap's layout counts a
// cached block as allocated. The program counts it as free.
std::int64_t CachedBlocks::untilLowWater() const noexcept {
  heap_->mutex().assertHeld();
  return heap_->lowWater().until(heap_->busyBytes() - bytes());
}

// ---- What is kept -------------------------------------------------------------------------------

// A block that would bring low water about is not kept, nor is then anything else.
bool CachedBlocks::keep(Block& block, ownership::Where from, WhoFreed who) noexcept {
  if (granted_ == 0) grant();
  const std::size_t at = indexOf(block.granules);
  const auto bytes = std::int64_t(block.bytes());
  const std::int64_t most = at == kLast ? ground_->most_last : mostFor(block.granules);
  if (bytes > most || heap_->forgotten() || (at == kLast && !keepsLarge())) return false;
  if (bytes >= untilLowWater()) {
    putAllBack();
    return false;
  }
  if (!hasStacks() && !makeStacks()) return false;
  if (at >= kShared && !becomeOf(at, block.granules)) return false;
  if (at != kLast && stacked() + bytes > most && !makeRoom(at, most - bytes)) return false;
  if (!ownership::take(block, holder_, from)) return false;
  stacks_->bins[at].push(block, who.word());
  if (at != kLast) room_ -= bytes;
  allow(untilLowWater() / 2);
  return true;
}

// A heap knows a round by its large requests (heap/rounds.hpp). Those that a cache served it would
// not see, and a cache serves others after a flush than before it.
bool CachedBlocks::keepsLarge() const noexcept {
  heap_->mutex().assertHeld();
  return !heap_->rounds().repeats() && !areOthersHere(*this);
}

// A bin that sizes share, and that for the last large block, becomes one of this size.
inline bool CachedBlocks::becomeOf(std::size_t bin, std::uint32_t granules) noexcept {
  if (bin != kLast && sizeOf(bin) == granules) return true;
  Habit& habit = bin == kLast ? last_habit_ : shared_habit_;
  if (stacks_->bins[bin].top != nullptr) habit.noteUnused();
  if (!habit.isWorthIt()) return false;
  putBack(bin);
  sizeOf(bin) = granules;
  return true;
}

// Makes the stacks keep no more than `most`: one goes after the other, and the block's own last. If
// they have a size each, a little more goes, so that the next blocks find room too.
bool CachedBlocks::makeRoom(std::size_t own, std::int64_t most) noexcept {
  const std::size_t first = own < kShared ? 0 : kShared;
  std::size_t& hand = own < kShared ? hand_ : shared_hand_;
  if (own < kShared) most = std::min(most, granted_ - granted_ / 8);
  for (std::size_t i = first; i < kLast && stacked() > most; ++i) {
    if (++hand == kLast) hand = first;
    if (hand != own) putBack(hand);
  }
  if (stacked() > most) putBack(own);
  return stacked() <= most;
}

void CachedBlocks::grant() noexcept {
  const std::int64_t bytes = ground_->most_stacked;
  if (ground_->left.fetch_sub(bytes, std::memory_order_relaxed) >= bytes)
    return void(granted_ = bytes);
  ground_->left.fetch_add(bytes, std::memory_order_relaxed);
}

// Without host memory the heap serves.
bool CachedBlocks::makeStacks() noexcept {
  Stacks* const made = new (std::nothrow) Stacks;
  if (made == nullptr) return false;
  stacks_ = made;
  ground_->stacks.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void CachedBlocks::dropStacks() noexcept {
  if (!hasStacks()) return;
  delete std::exchange(stacks_, &kNoStacks);
  ground_->stacks.fetch_sub(1, std::memory_order_relaxed);
}

// The heap has to see low water, so the cache may go half the way to it before it looks again.
void CachedBlocks::allow(std::int64_t more) noexcept {
  setLimit(std::min(granted_, stacked() + more));
}

void CachedBlocks::noteFall() noexcept {
  const std::int64_t more = untilLowWater() / 2;
  if (limit_ >= 0) allow(more);
  if (hasStacks() && last().top == nullptr && (std::int64_t{sizeOf(kLast)} << kGranuleShift) > more)
    sizeOf(kLast) = 0;
}

// ---- Blocks go back -----------------------------------------------------------------------------

void CachedBlocks::release(Block& block, WhoFreed who) noexcept {
  heap_->mutex().assertHeld();
  heap_->frees().note(deviceAddress(block), block.granules, who.code(),
                      who.thread() ? who.thread() : owner_);
  ownership::leaveToHeap(block, heap_->stream());
  heap_->release(block, ground_->tick.load(std::memory_order_relaxed), Heap::Freed::kFromCache);
  (void)heap_->lowWater().fall(heap_->busyBytes() - bytes());
}

void CachedBlocks::putBack(std::size_t at) noexcept {
  while (stacks_->bins[at].top != nullptr) {
    Block& block = stacks_->bins[at].pop();
    if (at != kLast) room_ += std::int64_t(block.bytes());
    release(block, WhoFreed(block.use.stream));
  }
  if (at == kLast && hasStacks() && !keepsLarge()) sizeOf(kLast) = 0;
}

void CachedBlocks::putAllBack() noexcept {
  putBack(kLast);
  for (std::size_t at = kLast; at > 0 && bytes() != 0;) putBack(--at);
  shared_habit_ = last_habit_ = {};
  hand_ = 0;
  shared_hand_ = kShared;
}

void CachedBlocks::flush() noexcept {
  putAllBack();
  setLimit(-1);
  dropStacks();
}

bool CachedBlocks::flushSome(SizeKind kind) noexcept {
  std::size_t bin = kind == SizeKind::kLarge ? kLast : kLast - 1;
  while (stacks_->bins[bin].top == nullptr) {
    if (bin == kLast || bin == 0) return false;
    --bin;
  }
  putBack(bin);
  return true;
}

void CachedBlocks::flushLast() noexcept {
  if (last().top == nullptr) return;
  last_habit_.noteUnused();
  putBack(kLast);
}

void CachedBlocks::audit() const {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < kLast; ++i) bytes += stacks_->bins[i].audit(holder_, sizeOf(i));
  CISTERN_CHECK(hasStacks() || room_ == -1);
  CISTERN_CHECK(bytes == stacked() && bytes <= granted_ && limit_ <= granted_);
  CISTERN_CHECK(last().audit(holder_, sizeOf(kLast)) ==
                (last().top ? std::int64_t(last().top->bytes()) : 0));
}

}  // namespace cistern
