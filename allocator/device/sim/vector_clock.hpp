// The work known to be done: for every lane, how many of its pieces of work happen before a point.
// A lane is a sequence of work in which each piece follows the one before: a stream, or one branch
// of a graph. Read next: race_detector.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace cistern::sim {

using LaneId = std::uint32_t;

/// The `tick`th piece of work of a lane, counted from 1.
struct Epoch {
  LaneId lane = 0;
  std::uint64_t tick = 0;
  friend bool operator==(Epoch, Epoch) = default;
};

/// Unknown lanes count as 0.
class VectorClock {
 public:
  std::uint64_t at(LaneId lane) const { return lane < ticks_.size() ? ticks_[lane] : 0; }
  /// Whether the work of that epoch happens before this point (or is at it).
  bool covers(Epoch epoch) const { return at(epoch.lane) >= epoch.tick; }

  void set(LaneId lane, std::uint64_t tick) {
    if (lane >= ticks_.size()) ticks_.resize(std::size_t{lane} + 1);
    ticks_[lane] = tick;
  }
  /// From now on comes after everything that either came after.
  void join(const VectorClock& other) {
    if (other.ticks_.size() > ticks_.size()) ticks_.resize(other.ticks_.size());
    for (std::size_t i = 0; i < other.ticks_.size(); ++i) {
      ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
    }
  }

 private:
  std::vector<std::uint64_t> ticks_;
};

/// A point in a stream's queue; null when nobody keeps track.
using Moment = std::shared_ptr<const VectorClock>;

}  // namespace cistern::sim
