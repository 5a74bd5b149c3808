// The blocks that one cache keeps.
//
//   up to 64 KiB     a stack for each size
//   up to 1 MiB      sixteen stacks, each of one size: the one that came last
//   up to 32 MiB     one block: the one that was freed last
//
// Only the last large block is kept. A block that comes back to where it just was, and not to where
// it fits best, costs pages that would have become free.
//
//   sum of the bytes of the stacks + room == limit <= granted <= CacheGround::most_stacked
//   the grants of all caches + CacheGround::left == CacheTable::Limits::all
//   each block in a bin is allocated to the layout, and its holder is this cache, Where::kCached
//   room >= 0  =>  the stacks are this cache's own
//
// The stacks are most of what a cache takes of host memory. They come with the first block that it
// keeps, and go when it is emptied. A thread may have used many streams that it does not use now.
//
// The room is what the stacks may still take without the heap's lock. Until an empty
// cache takes its first block, under the lock, its limit is -1, and there is no room. The one large
// block (the "last" block) is taken and returned without the heap's lock while its size stays the
// same.
//
// A stack that sizes share is never filled beyond three quarters of the grant. Otherwise a few
// blocks that nobody asks for again would fill the cache, and each small one would have to make
// room.
//
// While other threads use the stream too, no block beyond 1 MiB is kept: it would be missing to
// them. (One that is there when the second thread comes stays until the cache is emptied next.)
//
// Which thread may touch it at a moment: thread_cache.hpp.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/base/check.hpp"
#include "allocator/engine/heap/heap.hpp"

namespace cistern {

/// In granules.
struct CacheSizes {
  static constexpr std::uint32_t kDirect = 128;  ///< sizes up to here have a stack each
  static constexpr std::uint32_t kSmall = 2048;  ///< 1 MiB: larger requests are large
  static constexpr std::uint32_t kMost = 1 << 16;
  static constexpr std::uint64_t kDirectBytes = std::uint64_t{kDirect} << kGranuleShift;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{kMost} << kGranuleShift;

  static bool areShared(std::uint32_t granules) noexcept {
    return granules > kDirect && granules <= kSmall;
  }
  static SizeKind kindOf(std::uint32_t granules) noexcept {
    return granules <= kSmall ? SizeKind::kSmall : SizeKind::kLarge;
  }
};

/// Cached blocks of one size, linked by use.uses; use.stream is WhoFreed::word.
struct CacheBin {
  Block* top = nullptr;

  /// Pre: the block is at Where::kCached.
  void push(Block& block, Stream who) noexcept {
    block.use.stream = who;
    block.use.uses = top;
    top = &block;
  }
  /// Pre: it is not empty.
  Block& pop() noexcept {
    Block& block = *top;
    top = ownership::linkedTo(block);
    return block;
  }
  /// pop(), for the program, which has asked for `bytes`.
  Block& handOut(std::uint64_t bytes) noexcept {
    Block& block = pop();
    block.use.asked = std::uint32_t(bytes);
    block.use.holder -= std::uint32_t(ownership::Where::kCached);
    return block;
  }
  /// Checks each block; returns the bytes of all. `held`: as CachedBlocks::holder().
  std::int64_t audit(std::uint32_t held, std::uint32_t granules) const {
    std::int64_t bytes = 0;
    for (const Block* b = top; b; b = ownership::linkedTo(*b)) {
      CISTERN_CHECK(b->state() == BlockState::kAllocated && b->granules == granules);
      CISTERN_CHECK(ownership::load(*b) == ownership::moved(held, ownership::Where::kCached));
      bytes += std::int64_t(b->bytes());
    }
    return bytes;
  }
};

/// The state that all caches of an allocator share.
struct CacheGround {
  std::atomic<std::uint64_t> allowing_hits;   ///< the table's number; kNone while a router is set
  const std::int64_t most_stacked;            ///< bytes that the stacks of one cache may keep
  const std::int64_t most_last;               ///< bytes that its last block may have
  std::atomic<std::int64_t> left;             ///< bytes that may still be granted to caches
  const std::atomic<std::uint64_t>& tick;     ///< the allocator's clock
  std::atomic<ThreadCache*> filled{nullptr};  ///< the last that was listed (ThreadCache::list)
  std::atomic<std::size_t> stacks{0};         ///< caches that have stacks now
};

/// Whether it pays to keep a block if another has to go for it. Keeping is wasted if the kept block
/// is never the one that is requested next. But programs change, and now and then it is tried
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
  static constexpr std::size_t kShared = CacheSizes::kDirect;  ///< the first that sizes share
  static constexpr std::size_t kLast = kShared + 16;           ///< the one for a large block
  struct Stacks {
    std::array<CacheBin, kLast + 1> bins{};
    /// The size that each shared bin, and the last, accepts now. At 0 nothing comes back without
    /// the lock.
    std::array<std::uint32_t, kLast + 1 - kShared> sizes{};
  };
  /// The stacks of a cache that has none: empty, of no size, and never written.
  static Stacks kNoStacks;

 public:
  static constexpr std::size_t kStacksBytes = sizeof(Stacks);
  /// A cache of no heap.
  constexpr CachedBlocks() noexcept = default;
  /// `holder`: of a block that is this cache's and the program has.
  CachedBlocks(Heap& heap, std::uint32_t holder, CacheGround& ground) noexcept
      : holder_(holder), heap_(&heap), ground_(&ground) {}

  Heap& heap() const noexcept { return *heap_; }
  std::uint32_t holder() const noexcept { return holder_; }
  std::uint64_t bytes() const noexcept {
    return std::uint64_t(stacked()) + (last().top ? last().top->bytes() : 0);
  }
  bool has(std::uint32_t granules) const noexcept {
    const std::size_t bin = indexOf(granules);
    return stacks_->bins[bin].top != nullptr && isOf(bin, granules);
  }

  // ---- The owner under its biased lock, or as below --------------------------------------------

  /// The block that take() would hand out, or null.
  const Block* next(std::uint32_t granules) const noexcept {
    return has(granules) ? stacks_->bins[indexOf(granules)].top : nullptr;
  }
  /// A block for a request of `bytes`, or null. Pre: 0 < bytes <= CacheSizes::kDirectBytes.
  Block* takeDirect(std::uint64_t bytes) noexcept {
    CacheBin& bin = stacks_->bins[(bytes - 1) >> kGranuleShift];
    if (bin.top == nullptr) [[unlikely]]
      return nullptr;
    Block& block = bin.handOut(bytes);
    room_ += std::int64_t(block.bytes());
    return &block;
  }
  /// A block for a request of `bytes`, or null. Pre: 0 < bytes <= CacheSizes::kMostBytes.
  Block* take(std::uint64_t bytes) noexcept;
  /// Keeps a block that the program frees, if there is room. Pre: it is this cache's, the program
  /// has it, and it has `granules`, at most CacheSizes::kDirect.
  bool giveDirect(Block& block, std::uint32_t granules, const void* caller) noexcept {
    const std::int64_t bytes = std::int64_t{granules} << kGranuleShift;
    room_ -= bytes;
    if (room_ < 0 || !ownership::take(block, holder_)) [[unlikely]] {
      // Reads room_ again: the common case would pay for a register that keeps the old value.
      std::atomic_signal_fence(std::memory_order_seq_cst);
      room_ += bytes;
      return false;
    }
    stacks_->bins[granules - 1].push(block, Stream{toAddress(caller)});
    return true;
  }
  /// Keeps a block of any size that the program frees, if there is room. Pre: it is this cache's,
  /// and the program has it.
  bool give(Block& block, const void* caller) noexcept;

  // ---- Under the heap's lock, by the owner, or while the biased lock is revoked ----------------

  /// Becomes that of the thread numbered so, as a report of a double free names it.
  void open(std::uint32_t thread) noexcept { owner_ = thread; }
  /// Its heap is gone, and what it keeps with it.
  void abandon() noexcept { dropStacks(); }
  /// Becomes nobody's. Pre: it is empty.
  void close() noexcept {
    ground_->left.fetch_add(granted_, std::memory_order_relaxed);
    granted_ = 0;
  }
  /// The block becomes this cache's, as one that the program has.
  void own(Block& block) noexcept {
    if (block.granules <= CacheSizes::kMost) ownership::store(block, holder_);
  }
  /// Keeps a block that is at `from`, and puts others back to make room. False: the heap should
  /// have it, as when its stream is forgotten; or it is not at `from`, since somebody else frees it
  /// too.
  bool keep(Block& block, ownership::Where from, WhoFreed who) noexcept;
  /// A block that this cache does not keep goes to the heap, as one that was cached.
  void release(Block& block, WhoFreed who) noexcept;
  /// Puts everything back into the heap.
  void flush() noexcept;
  /// Puts the largest that it keeps of a kind back, some of them at a time. False: it keeps none.
  bool flushSome(SizeKind kind) noexcept;
  /// Puts the last block back, if there is one.
  void flushLast() noexcept;
  /// The heap has taken a block back.
  void noteFall() noexcept;
  void audit() const;

 private:
  static std::size_t indexOf(std::uint32_t granules) noexcept {
    if (granules <= CacheSizes::kDirect) return granules - 1;
    if (granules > CacheSizes::kSmall) return kLast;
    return kShared + ((granules * 0x9E3779B1u) >> 28);  // one of sixteen
  }
  /// Whether this cache keeps a large block at all. Pre: the heap's lock is held.
  bool keepsLarge() const noexcept;
  /// The size that the bin of that index has now. Pre: kShared <= bin.
  std::uint32_t& sizeOf(std::size_t bin) noexcept { return stacks_->sizes[bin - kShared]; }
  std::uint32_t sizeOf(std::size_t bin) const noexcept {
    return bin < kShared ? std::uint32_t(bin) + 1 : stacks_->sizes[bin - kShared];
  }
  /// Pre: bin == indexOf(granules).
  bool isOf(std::size_t bin, std::uint32_t granules) const noexcept {
    return bin < kShared || stacks_->sizes[bin - kShared] == granules;
  }
  CacheBin& last() noexcept { return stacks_->bins[kLast]; }
  const CacheBin& last() const noexcept { return stacks_->bins[kLast]; }
  std::int64_t stacked() const noexcept { return limit_ - room_; }
  /// The bytes that the stacks may keep when a block of that size comes in.
  std::int64_t mostFor(std::uint32_t granules) const noexcept {
    return CacheSizes::areShared(granules) ? granted_ - granted_ / 4 : granted_;
  }
  void setLimit(std::int64_t to) noexcept {
    room_ += to - limit_;
    limit_ = to;
  }
  void allow(std::int64_t more) noexcept;
  void grant() noexcept;
  bool hasStacks() const noexcept { return stacks_ != &kNoStacks; }
  bool makeStacks() noexcept;
  void dropStacks() noexcept;
  bool becomeOf(std::size_t bin, std::uint32_t granules) noexcept;
  bool makeRoom(std::size_t own, std::int64_t most) noexcept;
  void putBack(std::size_t bin) noexcept;
  void putAllBack() noexcept;
  std::int64_t untilLowWater() const noexcept;

  std::uint32_t holder_ = 0;
  std::int64_t room_ = -1;
  std::int64_t limit_ = -1;
  std::int64_t granted_ = 0;  ///< all or nothing, out of what all caches share
  Stacks* stacks_ = &kNoStacks;
  // Learnt since it was emptied; what it does next depends on nothing before that.
  Habit shared_habit_, last_habit_;
  std::size_t hand_ = 0;               ///< the bin that went back last to make room
  std::size_t shared_hand_ = kShared;  ///< as hand_, of the bins that sizes share
  Heap* heap_ = nullptr;
  CacheGround* ground_ = nullptr;
  std::uint32_t owner_ = 0;
};

inline Block* CachedBlocks::take(std::uint64_t bytes) noexcept {
  const auto granules = std::uint32_t(granulesFor(bytes));
  if (!has(granules)) return nullptr;
  const std::size_t bin = indexOf(granules);
  Block& block = stacks_->bins[bin].handOut(bytes);
  if (bin != kLast) room_ += std::int64_t(block.bytes());
  if (bin >= kShared) (bin == kLast ? last_habit_ : shared_habit_).noteUsed();
  return &block;
}

// The size that a bin is for may change while the biased lock is revoked. Hence it is looked at
// under that lock.
inline bool CachedBlocks::give(Block& block, const void* caller) noexcept {
  const std::uint32_t granules = block.granules;
  const std::size_t at = indexOf(granules);
  const auto bytes = std::int64_t(block.bytes());
  if (!isOf(at, granules)) return false;
  const bool fits = at == kLast ? last().top == nullptr
                                : bytes <= room_ && stacked() + bytes <= mostFor(granules);
  if (!fits || !ownership::take(block, holder_)) return false;
  stacks_->bins[at].push(block, Stream{toAddress(caller)});
  if (at != kLast) room_ -= bytes;
  return true;
}

}  // namespace cistern
