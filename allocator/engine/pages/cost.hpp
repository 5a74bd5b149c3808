// The cost of misses and calls, as measured. It decides how large new pages are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace cistern::pages {

/// A feedback controller that sets the size of new pages by what mapping them turns out to cost. It
/// adds up what misses took beyond the time plain growth would have taken. It subtracts a share of
/// wall time. A program that overdraws this share gets larger pages, of which fewer are mapped.
///
/// All in nanoseconds of the device's host clock.
///
///   overdrawn = what was taken beyond plain growth - share * time, within its bounds
///   scale = 2 ^ (overdrawn / kOctave), but at least 1
class CostController {
 public:
  /// `most`: what is overdrawn beyond that is forgotten.
  explicit CostController(double share, double most = kMost) : share_(share), most_(most) {}

  /// A miss ended at `now`. It took `took`; growing in plain pages would have taken `plain`.
  void note(double took, double plain, std::uint64_t now) {
    const double earned = last_ == 0 || now < last_ ? 0 : double(now - last_) * share_;
    last_ = now;
    overdrawn_ = std::clamp(overdrawn_ + std::max(0.0, took - plain) - earned, kLeast, most_);
  }
  /// What was overdrawn is paid for.
  void forget() { overdrawn_ = 0; }
  /// The factor by which the size of a new page is multiplied.
  double scale() const { return std::exp2(std::max(overdrawn_, 0.0) / kOctave); }
  /// Whether fewer calls matter more than what pages strand: 40 ms, `times` over, are overdrawn.
  bool muchOverdrawn(double times = 1) const { return overdrawn_ >= 2 * kOctave * times; }

 private:
  /// Pages are twice as large for each 20 ms. Sizes are rounded to powers of two, so less than
  /// 10 ms leaves a page of 8 MiB as it is.
  static constexpr double kOctave = 20e6;
  static constexpr double kLeast = -kOctave, kMost = 3 * kOctave;

  double share_, most_;
  double overdrawn_ = 0;
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
