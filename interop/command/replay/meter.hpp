// The cost of a replay: wall time, device calls, and their prices on the simulated device. All are
// counted between start() and stop() only, which stand close around a round's loop of events.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "interop/command/replay/device_bill.hpp"

namespace cistern::command {

class Meter {
 public:
  explicit Meter(const Device& device) : device_(device) {}

  void start() {
    before_ = billOf(device_);
    since_ = Clock::now();
  }
  /// `events` were played since start().
  void stop(std::uint64_t events) {
    events_ += events;
    wall_ += Clock::now() - since_;
    const DeviceBill round = billOf(device_) - before_;
    bill_ += round;
    calls_by_round_.push_back(totalOf(round.all_calls));
  }
  /// The clock stands still while `work`, which is not the policy's, runs. Pre: started.
  template <class Work>
  void exclude(Work work) {
    wall_ += Clock::now() - since_;
    work();
    since_ = Clock::now();
  }
  /// Nor has the bill what `work` asks of the device. Pre: started.
  template <class Work>
  void leaveOut(Work work) {
    const DeviceBill without = billOf(device_);
    exclude(work);
    before_ += billOf(device_) - without;
  }

  double wallNanoseconds() const { return std::chrono::duration<double, std::nano>(wall_).count(); }
  std::uint64_t events() const { return events_; }
  /// Of all rounds.
  const DeviceBill& bill() const { return bill_; }
  /// All calls of each round.
  const std::vector<std::uint64_t>& callsByRound() const { return calls_by_round_; }

 private:
  using Clock = std::chrono::steady_clock;

  const Device& device_;
  Clock::time_point since_;
  Clock::duration wall_{};
  std::uint64_t events_ = 0;
  DeviceBill before_;
  DeviceBill bill_;
  std::vector<std::uint64_t> calls_by_round_;
};

}  // namespace cistern::command
