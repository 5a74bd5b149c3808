// Low water: the moment, once a step or a batch, at which a heap has the fewest bytes in use.
//
// Programs repeat themselves in rounds. A round begins when the program has let go of all but what
// it keeps. From there usage rises at misses and falls at frees, until it is as low again. At low
// water pages go home (pages/placing.cpp), so that the next round finds them where this one did.
//
// A heap cannot know while usage falls whether it will fall further. So the lows of earlier rounds
// foretell the next: the least of them, and a little more, is the mark. Usage at or below the mark
// is low water.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "allocator/base/ablation.hpp"

namespace cistern {

/// The heap tells it the bytes in use. Costs one comparison per free. Guarded by the heap's lock.
class LowWater {
 public:
  /// Called after a free, with `busy` bytes in use. True at low water.
  bool fall(std::uint64_t busy) {
    low_ = std::min(low_, busy);
    return busy <= mark_;
  }
  /// Called after a free, with `busy` bytes in use. True at low water with work to do: pages may be
  /// away from home.
  bool isDue(std::uint64_t busy) { return fall(busy) && pages_moved_; }
  /// How many of `busy` bytes in use may be freed before isDue(). Without work to do: any number.
  std::int64_t until(std::uint64_t busy) const {
    if (!pages_moved_) return std::int64_t{1} << 60;
    return busy > mark_ ? std::int64_t(busy - mark_) : 0;
  }
  /// Pages have come to the heap, or to other places in it: some may be away from home. To send
  /// them home is the work to do at the next low water.
  void notePagesMoved() { pages_moved_ = true; }
  bool pagesMoved() const { return pages_moved_; }
  /// Called at a miss that pages serve, with `busy` bytes in use. If usage has risen by more than a
  /// quarter since the last low, that low becomes a sample for the mark.
  void rise(std::uint64_t busy) {
    // Usage has more than doubled: the program is starting up, and earlier lows do not count.
    if (busy / 2 > high_) {
      high_ = busy;
      low_ = least_ = before_ = kNone;
      rises_ = 0;
      mark_ = 0;
      return;
    }
    if (low_ == kNone || busy <= low_ + low_ / 4) return;
    if (++rises_ == kBackoff && !without(Mechanism::kLowWaterForgets)) {
      rises_ = 0;
      before_ = std::exchange(least_, kNone);
    }
    least_ = std::min(least_, low_);
    const std::uint64_t expected = std::min(least_, before_);
    mark_ = expected + (without(Mechanism::kLowWaterSlack) ? 0 : expected / 64);
    low_ = kNone;
  }
  /// The work of low water is done now, with `busy` bytes in use. Pages with blocks in use stay
  /// away from home, at least until the next low water. Until usage rises, low water is 7/8 of
  /// `busy` or less.
  void noteReached(std::uint64_t busy) {
    pages_moved_ = busy != 0;
    mark_ = busy - busy / 8;
    if (busy == 0) high_ = 0;  // what comes next may be another program
    low_ = least_ = before_ = busy;
    rises_ = 0;
  }

 private:
  /// A low that does not come again is forgotten after kBackoff samples, or at most twice as many.
  static constexpr unsigned kBackoff = 1024;
  static constexpr std::uint64_t kNone = UINT64_MAX;

  bool pages_moved_ = false;
  unsigned rises_ = 0;
  std::uint64_t high_ = 0;        ///< a high usage once seen; no miss saw more than twice it
  std::uint64_t low_ = kNone;     ///< the least after a free since the last sample
  std::uint64_t least_ = kNone;   ///< of the latest samples, at most kBackoff
  std::uint64_t before_ = kNone;  ///< of the kBackoff samples before those
  std::uint64_t mark_ = 0;        ///< usage at or below it is low water
};

}  // namespace cistern
