// The device calls that are to fail, though nothing is wrong. Under its own lock, and no thread
// takes another lock while it holds it. The simulated device queries the plan once at the start of
// every call.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "cistern/sim.hpp"

namespace cistern::sim {

class PlannedFaults final : public FaultPlan {
 public:
  void failNth(Call call, std::uint64_t nth, ErrorKind kind) override;
  void failNthOfAll(std::uint64_t nth, ErrorKind kind) override;
  void failAll(Call call, ErrorKind kind) override;
  void failRandomly(double probability, std::uint64_t seed, ErrorKind kind) override;
  void clear() override;
  std::uint64_t hits(Call call) const override;
  std::uint64_t hits() const override;

  /// Counts one call; returns the fault that it is to meet, if any. For the device.
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

  mutable Mutex mutex_{LockRank::kFaults};
  std::vector<Countdown> countdowns_ CISTERN_GUARDED_BY(mutex_);
  std::array<std::optional<ErrorKind>, kCallCount> always_ CISTERN_GUARDED_BY(mutex_){};
  std::optional<Random> random_ CISTERN_GUARDED_BY(mutex_);
  std::array<std::uint64_t, kCallCount> hits_ CISTERN_GUARDED_BY(mutex_){};
};

}  // namespace cistern::sim
