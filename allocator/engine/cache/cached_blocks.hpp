// The blocks that one cache keeps. Which ones it keeps, and what goes back for them: eviction.cpp.
//
//   sum of the bytes of bins 0 .. 143 == small.cached()      those of the last == large.cached()
//   each block in a bin is allocated to the layout, and its holder is this cache, Where::kCached
//
// A bin that sizes share is never filled beyond three quarters of the small budget: a few blocks
// that nobody asks for again would fill the cache, and each small one would have to make room.
// While other threads use the stream too, no large block is kept. (One that is there when the
// second thread comes stays until the cache is emptied next.)
//
// Which thread may touch it at a moment: thread_cache.hpp.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/engine/cache/cache_bins.hpp"
#include "allocator/engine/cache/cache_budget.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {

/// What all caches of an allocator share.
struct CacheGround {
  std::atomic<std::uint64_t> serving;         ///< the table's number, but while there is a router
  const std::int64_t most_small, most_large;  ///< bytes that one cache may keep
  std::atomic<std::int64_t> left;             ///< bytes that may still be granted to caches
  const std::atomic<std::uint64_t>& tick;     ///< the allocator's clock
  std::atomic<ThreadCache*> filled{nullptr};  ///< the last that was listed (ThreadCache::list)
};

/// Whether it pays to keep a block where another has to go for it. Where what is kept is never what
/// is asked for next, keeping it is wasted; but programs change, and now and then it is tried
/// again: after kBackoff wasted ones, each kBackoff-th is kept.
class Habit {
 public:
  void noteUsed() noexcept { unused_ = 0; }
  void noteUnused() noexcept { ++unused_; }
  /// Whether to keep the block that has come.
  bool isWorthIt() noexcept {
    if (unused_ >= kBackoff && ++passed_ < kBackoff) return false;
    passed_ = 0;
    return true;
  }

 private:
  static constexpr std::uint32_t kBackoff = 16;
  std::uint32_t unused_ = 0;  ///< how often in turn what was kept was not asked for again
  std::uint32_t passed_ = 0;  ///< how many were not kept since
};

class CachedBlocks {
 public:
  /// Of no heap.
  constexpr CachedBlocks() noexcept = default;
  /// `holder`: of a block that is this cache's and the program has.
  CachedBlocks(Heap& heap, std::uint32_t holder, CacheGround& ground) noexcept
      : holder_(holder), heap_(&heap), ground_(&ground) {}

  Heap& heap() const noexcept { return *heap_; }
  std::uint32_t holder() const noexcept { return holder_; }
  std::uint64_t bytes() const noexcept { return std::uint64_t(small_.cached() + large_.cached()); }
  /// Whether it keeps a large block.
  bool hasLast() const noexcept { return bins_[CacheBins::kLast].top != nullptr; }
  bool has(std::uint32_t granules) const noexcept {
    return bins_[CacheBins::indexOf(granules)].has(granules);
  }

  // ---- The owner inside its gate, or as below --------------------------------------------------

  /// A block for a request of `bytes`, or null. Pre: 0 < bytes <= CacheBins::kDirectBytes.
  Block* takeDirect(std::uint64_t bytes) noexcept {
    CacheBin& bin = bins_[(bytes - 1) >> kGranuleShift];
    if (bin.top == nullptr) [[unlikely]]
      return nullptr;
    Block& block = bin.handOut(bytes);
    small_.remove(std::int64_t(block.bytes()));
    return &block;
  }
  /// The same. Pre: 0 < bytes <= CacheBins::kMostBytes.
  Block* take(std::uint64_t bytes) noexcept;
  /// Keeps a block that the program frees, if there is room. Pre: it is this cache's, the program
  /// has it, and it has `granules`, at most CacheBins::kDirectGranules.
  bool giveDirect(Block& block, std::uint32_t granules, const void* caller) noexcept {
    const std::int64_t bytes = std::int64_t{granules} << kGranuleShift;
    small_.add(bytes);
    if (small_.room() < 0 || !ownership::take(block, holder_)) [[unlikely]] {
      // Read anew: the common case would pay for a register that keeps the old value.
      std::atomic_signal_fence(std::memory_order_seq_cst);
      small_.remove(bytes);
      return false;
    }
    bins_[granules - 1].push(block, Stream{toAddress(caller)});
    return true;
  }
  /// The same for any size.
  bool give(Block& block, const void* caller) noexcept;

  // ---- Under the heap's lock, by the owner, or while the owner's gate is closed ----------------

  /// Becomes that of the thread numbered so, as a report of a double free names it.
  void open(std::uint32_t thread) noexcept { owner_ = thread; }
  /// Becomes nobody's. Pre: it is empty.
  void close() noexcept {
    small_.giveBack(ground_->left);
    large_.giveBack(ground_->left);
  }
  /// The block becomes this cache's, as one that the program has.
  void own(Block& block) noexcept {
    if (block.granules <= CacheBins::kMostGranules) ownership::store(block, holder_);
  }
  /// Keeps a block that is at `from`, and puts others back to make room. False: the heap should
  /// have it, as where its stream is gone; or it is not at `from`, since somebody else frees it
  /// too.
  bool keep(Block& block, ownership::Where from, WhoFreed who) noexcept;
  /// A block that this cache does not keep goes to the heap, as one that was cached.
  void release(Block& block, WhoFreed who) noexcept;
  /// Puts everything back into the heap.
  void flush() noexcept;
  /// Puts the largest that it keeps of a kind back, some of them at a time. False: there are none.
  bool flushSome(SizeKind kind) noexcept;
  /// Puts the large one back.
  void flushLast() noexcept;
  /// The heap has taken a block back.
  void noteFall() noexcept;
  void audit() const;

 private:
  CacheBudget& budgetOf(std::uint32_t granules) noexcept {
    return granules <= CacheBins::kSmallGranules ? small_ : large_;
  }
  bool mayKeep(CacheBudget& budget, const Block& block) noexcept;
  bool becomeOf(std::size_t bin, std::uint32_t granules) noexcept;
  bool makeSharedRoom(std::size_t bin, std::int64_t bytes) noexcept;
  void makeSmallRoom(std::int64_t bytes) noexcept;
  void putBack(std::size_t bin) noexcept;
  void putAllBack() noexcept;
  std::int64_t untilLowWater() const noexcept;

  std::uint32_t holder_ = 0;
  CacheBudget small_, large_;
  CacheBins bins_;
  // Learnt since it was emptied; what it does next depends on nothing before that.
  Habit shared_, last_;                           ///< of the bins that sizes share; of the last
  std::size_t hand_ = 0;                          ///< the bin that went back last to make room
  std::size_t shared_hand_ = CacheBins::kShared;  ///< the same of those that sizes share
  Heap* heap_ = nullptr;
  CacheGround* ground_ = nullptr;
  std::uint32_t owner_ = 0;
};

inline Block* CachedBlocks::take(std::uint64_t bytes) noexcept {
  const auto granules = std::uint32_t(granulesFor(bytes));
  const std::size_t bin = CacheBins::indexOf(granules);
  if (!bins_[bin].has(granules)) return nullptr;
  Block& block = bins_[bin].handOut(bytes);
  budgetOf(granules).remove(std::int64_t(block.bytes()));
  if (bin >= CacheBins::kShared) (bin == CacheBins::kLast ? last_ : shared_).noteUsed();
  return &block;
}

// Which size a bin is for may change while the gate is closed; hence it is looked at inside.
inline bool CachedBlocks::give(Block& block, const void* caller) noexcept {
  CacheBin& bin = bins_[CacheBins::indexOf(block.granules)];
  CacheBudget& budget = budgetOf(block.granules);
  const auto bytes = std::int64_t(block.bytes());
  const bool full = &bin == &bins_.last() && bin.top != nullptr;
  if (bin.granules != block.granules || full || bytes > budget.room() ||
      !budget.fits(bytes, CacheBins::isShared(block.granules)) || !ownership::take(block, holder_))
    return false;
  bin.push(block, Stream{toAddress(caller)});
  budget.add(bytes);
  return true;
}

}  // namespace cistern
