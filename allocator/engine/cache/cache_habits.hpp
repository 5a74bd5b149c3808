// What a cache has learnt since it was emptied: which bin goes back next when there is no room, and
// whether it pays to keep a block where another has to go for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "allocator/engine/cache/cache_bins.hpp"

namespace cistern {

/// Where what is kept is never what is asked for next, keeping it is wasted; but programs change,
/// and now and then it is tried again: after kBackoff wasted ones, each kBackoff-th is kept.
class Habit {
 public:
  void noteUsed() noexcept { unused_ = 0; }
  void noteUnused() noexcept { ++unused_; }
  /// Whether to keep the block that has come.
  bool isWorthIt() noexcept {
    if (unused_ < kBackoff || ++passed_ >= kBackoff) {
      passed_ = 0;
      return true;
    }
    return false;
  }

 private:
  static constexpr std::uint32_t kBackoff = 16;
  std::uint32_t unused_ = 0;  ///< how often in turn what was kept was not asked for again
  std::uint32_t passed_ = 0;  ///< how many were not kept since
};

/// What a cache does next depends on this alone, and not on what it did before that.
struct CacheHabits {
  Habit shared;  ///< of the bins that sizes share
  Habit last;    ///< of the last large block
  std::size_t hand = 0;
  std::size_t shared_hand = CacheBins::kShared;

  void noteUsed(std::size_t bin) noexcept {
    if (bin >= CacheBins::kShared) (bin == CacheBins::kLast ? last : shared).noteUsed();
  }
  /// The next bin to be put back, of all small ones, or of those that sizes share.
  std::size_t next() noexcept { return hand = hand + 1 < CacheBins::kLast ? hand + 1 : 0; }
  std::size_t nextShared() noexcept {
    return shared_hand = shared_hand + 1 < CacheBins::kLast ? shared_hand + 1 : CacheBins::kShared;
  }
};

}  // namespace cistern
