// Rounds: where a heap placed its large blocks when the program last asked for the same.
//
// A program that repeats itself asks for the same sizes in the same order, round after round. A
// heap notes each large request: its size and its place. A cursor stands on the request of the
// round before that corresponds to the last one, and moves on with it. So the heap knows where the
// next request was placed in the last rounds.
//
// A request goes where it was two rounds ago. Where it was in the round before may still be in use:
// in a loop, the loss or the output of a step lives until its successor is made. With two rounds in
// turn every block finds its place free, if memory suffices for both.
//
//   asked(n)                    n < count; the last kMost of them are kept
//   cursor == kNone, or         asked(cursor).granules == asked(count - 1).granules
//                               period = count - 1 - cursor > 0
//   matched                     requests in a row, but for small deviations, that had a counterpart
//   repeats()              <=>  matched >= max(kLeast, 2 * period), and there is a cursor
//
// Guarded by the heap's lock. A hit notes one request, which takes a few instructions. The search
// for a round is for misses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "allocator/base/ablation.hpp"
#include "allocator/base/sabotage.hpp"
#include "cistern/types.hpp"

namespace cistern {

class Rounds {
 public:
  /// Where a request for so much, which is the next to be noted, was placed two rounds ago. 0 where
  /// that is unknown, or the program has not repeated itself for two rounds.
  Address placeOf(std::uint32_t granules) const {
    if (!repeats()) [[likely]]
      return 0;
    const Asked& was = asked(cursor_ + 1);
    if (was.granules != granules) return 0;
    return broken(Rule::kPlaces) ? was.at : was.before;
  }
  bool repeats() const { return matched_ >= needed_ && !without(Mechanism::kRounds); }
  /// Requests noted so far.
  std::uint64_t count() const { return count_; }
  /// A miss begins. Whether two rounds have been noted since the last one, of the longest that were
  /// found so far.
  bool noteMiss() {
    const std::uint64_t since = count_ - std::exchange(missed_at_, count_);
    if (!repeats()) return false;
    two_rounds_ = std::max(two_rounds_, std::uint32_t(needed_));
    return since > two_rounds_;
  }
  /// 1, and twice that for each thaw.
  std::uint32_t patience() const { return patience_; }
  /// Whether the heap looks here before it places a large block: its requests have places, or it is
  /// to freeze, or moves to where it is frozen.
  bool guides() const { return repeats() || count_ < guides_until_; }
  /// The heap is not at rest. So it is to freeze before the next request that finds as little in
  /// use as one of this round did. Two rounds later the plan is void. Pre: repeats().
  void planFreeze() noexcept;
  void dropPlan() { guides_until_ = 0; }
  /// Whether more than a third of the most that was in use stays so through the round. Pre: a
  /// freeze is planned.
  bool keepsMuch() const { return least_busy_ > most_busy_ / 3; }
  /// Whether that request, which finds so many MiB in use, is the next.
  bool isFreezeDue(std::uint64_t busy) const { return isFreezePlanned() && busy <= least_busy_; }
  /// The heap is frozen from now on: no page leaves its place at `from` or behind it, and large
  /// blocks for which memory is missing lie there.
  void freeze(Address from) {
    frozen_from_ = from;
    guides_until_ = count_ + two_rounds_;
  }
  /// It takes twice as much to freeze again.
  void thaw() {
    if (!frozen()) return;
    frozen_from_ = 0;
    guides_until_ = 0;
    patience_ = std::min(2 * patience_, kMostPatience);
  }
  bool frozen() const { return frozen_from_ != 0; }
  /// For two rounds a frozen heap takes no free block before `from`, but their pages.
  bool movesIn() const { return frozen() && count_ < guides_until_; }
  /// 0: it is not frozen.
  Address frozenFrom() const { return frozen_from_; }
  /// Whether `busy` MiB are so much more than were in use when the freeze was planned that the
  /// program is another one by now.
  bool outgrowsFreeze(std::uint64_t busy) const { return busy > most_busy_ + most_busy_ / 8; }
  /// A request was placed there, with so many MiB in use before it.
  void note(std::uint32_t granules, Address at, std::uint32_t busy) noexcept {
    if (count_ == slots_) [[unlikely]] {
      if (!grow()) return;
    }
    Asked& now = asked(count_++);
    now = {at, 0, granules, busy};
    if (cursor_ != kNone) {
      const Asked& was = asked(++cursor_);
      if (was.granules != granules) [[unlikely]]
        return deviate();
      ++matched_;
      now.before = was.at;
    }
    if (adrift_ != 0) [[unlikely]]
      findNearby();
  }
  /// A miss looks for the round, if it is unknown and enough was noted since the last search. Takes
  /// a few comparisons for each request noted since.
  void search() noexcept;
  /// What was noted was of another stream or pool.
  void forget() noexcept { *this = {}; }

  std::size_t hostBytes() const { return slots_ * sizeof(Asked); }

 private:
  struct Asked {
    Address at;      ///< where it was placed
    Address before;  ///< where its counterpart was placed; 0: unknown
    std::uint32_t granules;
    std::uint32_t busy;  ///< MiB in use before it
  };
  static constexpr std::uint64_t kNone = UINT64_MAX;
  /// A round of more large requests than half of these is not recognized.
  static constexpr std::size_t kMost = 16'384, kFirst = 16;
  /// Fewer requests that match may do so by chance.
  static constexpr std::uint64_t kLeast = 64;
  static constexpr std::uint32_t kMostPatience = 1U << 16;

  Asked& asked(std::uint64_t number) { return asked_[number & (slots_ - 1)]; }
  const Asked& asked(std::uint64_t number) const { return asked_[number & (slots_ - 1)]; }
  std::uint64_t period() const { return count_ - 1 - cursor_; }
  bool isFreezePlanned() const { return !frozen() && count_ < guides_until_; }
  bool grow() noexcept;
  /// Whether requests have counterparts in a round before, but for those that deviate now.
  bool follows() const { return cursor_ != kNone || adrift_ != 0; }
  void follow(std::uint64_t counterpart) noexcept;
  void lose() noexcept;
  void deviate() noexcept;
  void findNearby() noexcept;
  std::vector<std::uint32_t> matches() const;

  std::uint64_t count_ = 0;  ///< requests noted
  std::uint64_t cursor_ = kNone;
  std::uint64_t matched_ = 0;
  std::uint64_t needed_ = kNone;  ///< of `matched`, for repeats(); kNone without a cursor
  std::uint64_t anchor_ = 0;      ///< adrift: what would be the counterpart of the last one
  std::uint64_t searched_ = 0;    ///< count_ at the last search
  std::int64_t credit_ = 0;       ///< what matched, less what deviations cost, less `matched`
  std::uint32_t slots_ = 0;       ///< of asked_; 0 or a power of two
  std::uint16_t adrift_ = 0;      ///< requests since the first that did not match, with it
  bool deviated_ = false;         ///< since the last search
  std::uint64_t missed_at_ = 0;   ///< count_ at the last miss
  std::uint32_t most_busy_ = 0;   ///< MiB in use when a freeze was planned, at most
  std::uint32_t patience_ = 1;
  std::uint64_t guides_until_ = 0;  ///< count_ when all has moved in, or the plan is void
  Address frozen_from_ = 0;         ///< 0: not frozen
  std::uint32_t least_busy_ = 0;    ///< MiB in use in a round when the freeze was planned, at least
  std::uint32_t two_rounds_ = 0;    ///< the most that was needed_ at a miss
  std::unique_ptr<Asked[]> asked_{};
};

}  // namespace cistern
