// What a replay costs: wall time, device calls, and what the simulated device prices them at. All
// three are counted between start() and stop() only, which stand close around the loop of events.
#pragma once

#include <chrono>
#include <cstdint>

#include "allocator/device/device.hpp"

namespace cistern::command {

class Meter {
 public:
  explicit Meter(const Device& device) : device_(device) {}

  void start() {
    calls_before_ = device_.callCounts();
    modelled_before_ = device_.modelledNanoseconds();
    since_ = Clock::now();
  }
  /// `events` were played since start().
  void stop(std::uint64_t events) {
    events_ += events;
    wall_ += Clock::now() - since_;
    const CallCounts now = device_.callCounts();
    for (std::size_t i = 0; i < kCallCount; ++i) calls_[i] += now[i] - calls_before_[i];
    modelled_ += device_.modelledNanoseconds() - modelled_before_;
  }
  /// The clock stands still while `work`, which is not the policy's, runs. Pre: started.
  template <class Work>
  void exclude(Work work) {
    wall_ += Clock::now() - since_;
    work();
    since_ = Clock::now();
  }

  double wallNanoseconds() const { return std::chrono::duration<double, std::nano>(wall_).count(); }
  std::uint64_t events() const { return events_; }
  const CallCounts& calls() const { return calls_; }
  std::uint64_t modelledNanoseconds() const { return modelled_; }

 private:
  using Clock = std::chrono::steady_clock;

  const Device& device_;
  Clock::time_point since_;
  Clock::duration wall_{};
  std::uint64_t events_ = 0;
  CallCounts calls_before_{};
  CallCounts calls_{};
  std::uint64_t modelled_before_ = 0;
  std::uint64_t modelled_ = 0;
};

}  // namespace cistern::command
