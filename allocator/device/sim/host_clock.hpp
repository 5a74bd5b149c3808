// The simulated host's time: one clock for all its threads, which every device call advances by its
// cost. Under the simulated device's lock.
#pragma once

#include <cstdint>
#include <limits>

#include "allocator/device/background_account.hpp"

namespace cistern::sim {

/// The completion time of work that never ends.
inline constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

/// start + duration, where kNever absorbs everything.
constexpr std::uint64_t later(std::uint64_t start, std::uint64_t duration) {
  return duration >= kNever - start ? kNever : start + duration;
}

/// All in nanoseconds. Invariant: foreground() <= now().
class HostClock {
 public:
  std::uint64_t now() const { return now_; }
  /// The cost of all calls so far that were not made in the background, and of those that were.
  std::uint64_t foreground() const { return foreground_; }
  std::uint64_t background() const { return background_; }

  /// A device call took `cost`.
  void charge(std::uint64_t cost) {
    if (BackgroundAccount::active()) {
      background_ += cost;
    } else {
      foreground_ += cost;
      now_ += cost;
    }
  }
  /// Time that no device call took: the program's own, or a wait.
  void advance(std::uint64_t nanoseconds) { now_ += nanoseconds; }
  void advanceTo(std::uint64_t time) { now_ = time > now_ ? time : now_; }

 private:
  std::uint64_t now_ = 0;
  std::uint64_t foreground_ = 0;
  std::uint64_t background_ = 0;
};

}  // namespace cistern::sim
