// Which device calls are to fail, though nothing is wrong. Under its own lock, which is never held
// while another is taken; the simulated device asks it once at the start of every call.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/device/call.hpp"
#include "allocator/device/status.hpp"

namespace cistern::sim {

/// A call that the plan fails changes nothing, except that a failed endCapture has ended its
/// capture, as the contract says. Plans for calls of any kind pass over exchangeCaptureMode: it
/// swaps a word of the thread's own, and one that fails on the way back could not be put right.
/// All members are thread-safe.
class FaultPlan {
 public:
  /// The `nth` call of that kind from now fails, once. Pre: nth >= 1.
  void failNth(Call call, std::uint64_t nth, ErrorKind kind = ErrorKind::kOutOfMemory);
  /// The `nth` call of any kind from now fails, once. Pre: nth >= 1.
  void failNthOfAll(std::uint64_t nth, ErrorKind kind = ErrorKind::kOutOfMemory);
  /// Every call of that kind fails until clear().
  void failAll(Call call, ErrorKind kind = ErrorKind::kOutOfMemory);
  /// Each call of any kind fails with that probability until clear(); the same seed and calls give
  /// the same faults. Pre: 0 <= probability <= 1.
  void failRandomly(double probability, std::uint64_t seed,
                    ErrorKind kind = ErrorKind::kOutOfMemory);
  /// Forgets everything planned; hits() is kept.
  void clear();

  /// How many calls of that kind, or of any kind, the plan has failed so far.
  std::uint64_t hits(Call call) const;
  std::uint64_t hits() const;

  /// Counts one call; the fault that it is to meet, if any. For the device.
  std::optional<ErrorKind> next(Call call);

 private:
  struct Countdown {
    std::optional<Call> call;  ///< none: any
    std::uint64_t left;        ///< calls until it strikes; >= 1
    ErrorKind kind;
  };
  struct Random {
    double probability;
    std::mt19937_64 source;
    ErrorKind kind;
  };

  static bool inAnyKind(Call call);
  std::optional<ErrorKind> countDown(Call call) CISTERN_REQUIRES(mutex_);
  bool roll() CISTERN_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::vector<Countdown> countdowns_ CISTERN_GUARDED_BY(mutex_);
  std::array<std::optional<ErrorKind>, kCallCount> always_ CISTERN_GUARDED_BY(mutex_){};
  std::optional<Random> random_ CISTERN_GUARDED_BY(mutex_);
  std::array<std::uint64_t, kCallCount> hits_ CISTERN_GUARDED_BY(mutex_){};
};

}  // namespace cistern::sim
