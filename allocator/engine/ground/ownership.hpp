// Block::InUse::holder says whether the heap alone or a thread's cache looks after a block in use.
//
//   the heap    holder == requested >> 32 < kOwned; stream and uses are what they say
//   a cache     holder == kOwned | owner << 2 | where; requested < 2^32; the stream is the heap's,
//               nobody else uses the block, and the fields `stream` and `uses` are the cache's own
//
// Only its owner moves a cache's block from kHeld to kCached and back, under its biased lock.
// Another thread that frees it makes it kRemoteFreed, or the heap's, by compare-and-swap. So a
// double free is detected if the frees come one after the other. It is also detected if neither
// thread owns the block. If the owner frees at the same moment, only a debug build detects it:
// there the owner's free is a compare-and-swap too. See Note [Two frees at once].
//
// Note [Two frees at once]
// Exactly one of two frees must succeed, whichever comes first. If each only looks and then writes,
// both may look first. So one of them has to do both in one step (a locked instruction). Or it has
// to write first and look then, with a fence between the two (as dear). H. Attiya et al., "Laws of
// Order", 2011, show that there is no third way. One of two has to pay:
//
//   the owner   a compare-and-swap in place of a store is a locked instruction in every pair, some
//               20 cycles where the pair takes 25
//   the others  every free of another thread's block would need a barrier in all threads
//               (biased_lock.hpp): several microseconds, instead of one compare-and-swap
//
// It does not help either to look again later, when the owner takes in what others returned. By
// then its own free has linked the block through the same words as the other's. The block may have
// been handed out again, or have coalesced. So a release build leaves it to the program, as it does
// writes to freed memory; a debug build pays, and names both frees.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/layout/block.hpp"

namespace cistern {

/// A block in a cache, or on its way there, remembers in this word which code freed it, and which
/// thread. Thread number 0 stands for the owner. Numbers above 16 bits are stored as 0.
class WhoFreed {
 public:
  explicit WhoFreed(Stream word) : word_(word.raw) {}
  WhoFreed(const void* code, std::uint32_t thread)
      : word_((toAddress(code) & kCode) | std::uint64_t{thread >> 16 ? 0 : thread} << kCodeBits) {}
  Stream word() const { return Stream{word_}; }
  const void* code() const { return toPointer(word_ & kCode); }
  std::uint32_t thread() const { return std::uint32_t(word_ >> kCodeBits); }

 private:
  static constexpr unsigned kCodeBits = 48;  ///< user space is not larger
  static constexpr std::uint64_t kCode = (std::uint64_t{1} << kCodeBits) - 1;
  std::uint64_t word_;
};

namespace ownership {

inline constexpr std::uint32_t kOwned = std::uint32_t{1} << 31;
inline constexpr unsigned kOwnerBits = 29;

enum class Where : std::uint32_t {
  kHeld,         ///< the program has it
  kCached,       ///< it lies in its owner's cache
  kRemoteFreed,  ///< another thread has freed it; it is on its way to its owner's cache
};

constexpr std::uint32_t holderOf(std::uint32_t owner, Where where) {
  return kOwned | owner << 2 | std::uint32_t(where);
}
constexpr bool isOwned(std::uint32_t holder) { return (holder & kOwned) != 0; }
/// Pre: isOwned(holder).
constexpr std::uint32_t ownerOf(std::uint32_t holder) { return (holder & ~kOwned) >> 2; }
constexpr Where whereIs(std::uint32_t holder) {
  return isOwned(holder) ? Where(holder & 3) : Where::kHeld;
}
/// The holder word with the same owner and another `Where`.
constexpr std::uint32_t moved(std::uint32_t holder, Where to) {
  return (holder & ~std::uint32_t{3}) | std::uint32_t(to);
}

inline std::uint32_t load(const Block& block) noexcept {
  return std::atomic_ref(const_cast<std::uint32_t&>(block.use.holder))
      .load(std::memory_order_relaxed);
}
inline void store(Block& block, std::uint32_t holder) noexcept {
  std::atomic_ref(block.use.holder).store(holder, std::memory_order_relaxed);
}
/// False when the holder is not `from` any more.
inline bool change(Block& block, std::uint32_t from, std::uint32_t to) noexcept {
  return std::atomic_ref(block.use.holder)
      .compare_exchange_strong(from, to, std::memory_order_acq_rel, std::memory_order_relaxed);
}

#if defined(CISTERN_DEBUG)
inline constexpr bool kExactFrees = true;
#else
inline constexpr bool kExactFrees = false;
#endif

/// The owner takes a block of its own, which it has seen to be at `from`, into its cache. False
/// when another thread has freed the block first: only a debug build detects it. Note [Two frees at
/// once]
inline bool take(Block& block, std::uint32_t held, Where from = Where::kHeld) noexcept {
  if constexpr (kExactFrees) return change(block, moved(held, from), moved(held, Where::kCached));
  block.use.holder += std::uint32_t(Where::kCached) - std::uint32_t(from);
  return true;
}

/// How many bytes the program asked for.
inline std::uint64_t requested(const Block& block) noexcept {
  const std::uint32_t holder = load(block);
  const std::uint64_t high = isOwned(holder) ? 0 : holder;
  return high << 32 | block.use.asked;
}
/// Pre: the layout says that the block is allocated.
inline bool heldByProgram(const Block& block) noexcept {
  return whereIs(load(block)) == Where::kHeld;
}

/// The next of a list of blocks that a cache keeps, or that others have freed.
inline Block* linkedTo(const Block& block) noexcept { return static_cast<Block*>(block.use.uses); }

/// The record of a block that the heap alone looks after.
inline Block::InUse heapsOwn(std::uint64_t requested, Stream stream) noexcept {
  return {std::uint32_t(requested), std::uint32_t(requested >> 32), stream, nullptr};
}
/// A cache's block becomes the heap's alone, on the heap's stream. Pre: nobody else can reach it.
inline void leaveToHeap(Block& block, Stream stream) noexcept {
  block.use.stream = stream;
  block.use.uses = nullptr;
  store(block, 0);
}
/// A cache's block that the program has becomes the heap's alone, on the heap's stream. False when
/// the program does not have it, or another thread frees it at the same moment. Pre:
/// isOwned(holder).
inline bool takeOutOfCache(Block& block, std::uint32_t holder, Stream stream) noexcept {
  if (whereIs(holder) != Where::kHeld) return false;
  if (!change(block, holder, moved(holder, Where::kRemoteFreed))) return false;
  leaveToHeap(block, stream);
  return true;
}

}  // namespace ownership
}  // namespace cistern
