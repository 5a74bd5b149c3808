// Looks after each step of a replay at what the policy has reserved, at the times of the recording.
#pragma once

#include <cstdint>

#include "interop/command/replay/policy.hpp"
#include "interop/command/replay/watch.hpp"
#include "interop/report/columns.hpp"

namespace cistern::command {

class ColumnWatch : public Watch {
 public:
  /// Pre: both outlive this. The steps that come are the recording's allocations, frees and ends of
  /// uses, in order.
  ColumnWatch(const Policy& policy, const recording::Recording& recording)
      : policy_(policy),
        recording_(recording),
        columns_(recording, report::kTimelineColumns),
        most_(columns_),
        now_us_(recording.events.empty() ? 0 : recording.events.front().time_us) {}

  void stepped(const Step&) override {
    toNextStep();
    ++event_;
    look();
  }
  // Within one step a policy may take memory and give it back: the peak tells.
  void look() override {
    const ReservedBytes reserved = policy_.reserved();
    if (reserved.peak > peak_) most_.add(now_us_, peak_ = reserved.peak);
    most_.add(now_us_, reserved.now);
  }

  bool isLeftOut() const override { return false; }  // nobody reads the meter

  /// The number of the event that is next, or is being served.
  std::uint32_t event() const { return event_; }
  /// The time of the last step that was served, in µs.
  std::uint64_t nowUs() const { return now_us_; }
  /// The time of the step after it. Pre: there is one.
  std::uint64_t nextUs() {
    toNextStep();
    return now_us_;
  }
  std::uint64_t peak() const { return peak_; }
  /// Once, at the end.
  std::vector<std::uint64_t> columns() { return most_.finish(); }

 private:
  void toNextStep() {
    while (!recording_.events[event_].isCall()) ++event_;
    now_us_ = recording_.events[event_].time_us;
  }

  const Policy& policy_;
  const recording::Recording& recording_;
  const report::Columns columns_;
  report::ColumnMost most_;
  std::uint64_t now_us_;  ///< not before the first column
  std::uint32_t event_ = 0;
  std::uint64_t peak_ = 0;
};

}  // namespace cistern::command
