// The epochs of a heap, and the stamps that blocks have of them.
//
// Every free is stamped with the present epoch of its heap. An epoch ends when somebody wants to
// know whether what was freed by then is complete (completion.hpp).
//
// Epochs never run out. A block's record has room for 32 bits only, so its stamp counts from a
// base. When the next epoch would have no stamp, the base moves on, and all free blocks get new
// stamps.
//
//   completed < epoch,  base < epoch <= base + UINT32_MAX
//
// Guarded by the heap's lock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "allocator/base/check.hpp"
#include "allocator/base/sabotage.hpp"

namespace cistern {

/// A range of epochs. A search takes only blocks that were freed in it.
struct Epochs {
  std::uint64_t first = 0, last = UINT64_MAX;
  static Epochs upTo(std::uint64_t last) { return {0, last}; }
  static Epochs none() { return {1, 0}; }
  bool contain(std::uint64_t epoch) const { return first <= epoch && epoch <= last; }
};

class EpochClock {
 public:
  explicit EpochClock(std::uint64_t first_epoch) : epoch_(first_epoch) {}

  /// The present epoch.
  std::uint64_t now() const { return epoch_; }
  /// The last epoch that is known to be complete.
  std::uint64_t completed() const { return completed_; }
  /// Whether all that was freed in that epoch or before is complete.
  bool complete(std::uint64_t epoch) const {
    return epoch <= completed_ || broken(Rule::kCompletion);
  }
  /// All that was freed in that epoch, which has ended, or before is complete.
  void noteComplete(std::uint64_t epoch) noexcept { completed_ = std::max(completed_, epoch); }
  /// Ends the present epoch, and returns it. Pre: not ranOut().
  std::uint64_t endEpoch() noexcept { return epoch_++; }

  // ---- Stamps: the epochs of free blocks

  /// The stamp of memory that was used last in that epoch. An epoch at or below the base has no
  /// stamp of its own. It gets kComplete if it is complete, else kFirst.
  std::uint32_t stampOf(std::uint64_t epoch) const {
    if (epoch > base_) return std::uint32_t(epoch - base_);
    return epoch <= completed_ ? kComplete : kFirst;
  }
  /// The epoch that a stamp means; 0 for what is complete for good.
  std::uint64_t epochOf(std::uint32_t stamp) const {
    return stamp == kComplete ? 0 : base_ + stamp;
  }
  /// The next epoch has no stamp: all free blocks must get new ones (Heap::endedEpoch).
  bool ranOut() const { return epoch_ - base_ == UINT32_MAX; }
  /// From now on kFirst means the present epoch.
  void moveBase() noexcept { base_ = epoch_ - 1; }
  static constexpr std::uint32_t kComplete = 0, kFirst = 1;
  /// Checks what is promised above; aborts if it does not hold.
  void audit() const {
    CISTERN_CHECK(completed_ < epoch_);
    CISTERN_CHECK(base_ < epoch_ && epoch_ - base_ <= UINT32_MAX);
  }

 private:
  std::uint64_t epoch_;
  std::uint64_t base_ = 0;
  std::uint64_t completed_ = 0;
};

}  // namespace cistern
