// Low water: a program has let go of all but what it keeps. At that moment, once a step or a batch,
// the bytes in use are as few as they ever are. Programs repeat themselves from there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "allocator/base/ablation.hpp"

namespace cistern {

/// Its owner feeds it the bytes in use. It costs one comparison per free.
class LowWater {
 public:
  /// `busy` bytes are in use after a free. True at low water.
  bool fall(std::uint64_t busy) {
    low_ = std::min(low_, busy);
    return busy <= mark_;
  }
  /// The same, if there is something to do at low water.
  bool isDue(std::uint64_t busy) { return fall(busy) && pages_moved_; }
  /// How many bytes may go before low water with something to do, of `busy` in use.
  std::int64_t until(std::uint64_t busy) const {
    if (!pages_moved_) return std::int64_t{1} << 60;
    return busy > mark_ ? std::int64_t(busy - mark_) : 0;
  }
  /// Low water came when a cache was put back: nobody could do anything about it.
  void notePassed() { passed_ = true; }
  /// Whether that was so, and with `busy` bytes in use it is still low water. Asked once.
  bool takePassed(std::uint64_t busy) {
    return std::exchange(passed_, false) && pages_moved_ && busy <= mark_;
  }
  /// Pages have come to the heap, or to other places in it, since the last low water: some may be
  /// away from home (pages/placing.cpp). To send them home is the work to do at low water.
  void notePagesMoved() { pages_moved_ = true; }
  bool pagesMoved() const { return pages_moved_; }
  /// `busy` bytes are in use at a moment that matters, more than at the low before it. The next low
  /// is measured by that low.
  void rise(std::uint64_t busy) {
    if (busy / 2 > high_) {  // it is still beginning, and does not come back to what was before
      if (busy / 2 > most_) was_reached_ = false;
      most_ = std::max(most_, busy);
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
  /// The work to do at low water was done, with `busy` bytes in use. The bytes may go on falling.
  /// Memory in use stays where it is, and may go when more of it is free.
  void noteReached(std::uint64_t busy) {
    pages_moved_ = busy != 0;
    passed_ = false;
    mark_ = busy - busy / 8;
    if (busy == 0) high_ = 0;  // what comes next may be another program
    low_ = least_ = before_ = busy;
    rises_ = 0;
    was_reached_ = true;
  }
  /// Whether that was so since it last grew to twice all that it ever was.
  bool wasReached() const { return was_reached_; }

 private:
  /// A low that does not come again is forgotten after so many rises, or twice as many.
  static constexpr unsigned kBackoff = 1024;
  static constexpr std::uint64_t kNone = UINT64_MAX;

  bool was_reached_ = false;
  bool pages_moved_ = false;
  bool passed_ = false;
  unsigned rises_ = 0;
  std::uint64_t most_ = 0;        ///< as high_, since the very beginning
  std::uint64_t high_ = 0;        ///< more than half of the most at any rise
  std::uint64_t low_ = kNone;     ///< the least after a free since the last rise
  std::uint64_t least_ = kNone;   ///< of the lows of the last rises, fewer than kBackoff
  std::uint64_t before_ = kNone;  ///< of the kBackoff before
  std::uint64_t mark_ = 0;        ///< at or below it is low water
};

}  // namespace cistern
