// How much time may go into what growing would have saved: a bucket that wall time fills, at a
// rate, and that moves and small pages draw from. Guarded by the backing's lock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cistern::pages {

/// All in nanoseconds of the device's host clock. From the start on, what is spent is at most the
/// rate times the time and the advance, and what one miss overdraws.
class Budget {
 public:
  /// What an idle program saves up, at most: as much as 20 s earn.
  static constexpr double kFullAfterNs = 20e9;
  /// What a program may spend before it has earned anything: what half a second earns.
  static constexpr double kAdvanceNs = 0.5e9;

  explicit Budget(double rate) : rate_(rate), balance_(kAdvanceNs * rate) {}

  /// It is `now`; the first call only starts the clock.
  void earnUntil(std::uint64_t now) {
    if (last_ != 0 && now > last_) {
      balance_ = std::min(balance_ + double(now - last_) * rate_, kFullAfterNs * rate_);
    }
    last_ = std::max<std::uint64_t>(now, 1);
  }
  double balance() const { return balance_; }
  void spend(double nanoseconds) { balance_ -= nanoseconds; }

 private:
  const double rate_;
  double balance_;
  std::uint64_t last_ = 0;
};

/// A running mean of what a call took, from a first guess on.
class CallCost {
 public:
  explicit CallCost(double guess) : mean_(guess) {}
  double mean() const { return mean_; }
  void note(double nanoseconds) { mean_ += (nanoseconds - mean_) / kWeight; }

 private:
  static constexpr double kWeight = 64;
  double mean_;
};

}  // namespace cistern::pages
