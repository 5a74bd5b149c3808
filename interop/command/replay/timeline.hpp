// The position of a program on the time axis of its picture. It is in µs of the program's own time,
// or, if no time was recorded, the number of the event.
#pragma once

#include <algorithm>
#include <cstdint>

#include "interop/command/replay/script.hpp"

namespace cistern::command {

class Timeline {
 public:
  Timeline(const Script& script, std::uint64_t rounds)
      : in_events_(std::all_of(script.steps.begin(), script.steps.end(),
                               [](const Step& step) { return step.after_us == 0; })) {
    for (const Step& step : script.steps) span_ += lengthOf(step);
    span_ *= rounds;
  }

  bool inEvents() const { return in_events_; }
  /// Of all rounds.
  std::uint64_t span() const { return span_; }
  /// From the step before it to this one.
  std::uint64_t lengthOf(const Step& step) const { return in_events_ ? 1 : step.after_us; }

 private:
  bool in_events_;
  std::uint64_t span_ = 0;
};

}  // namespace cistern::command
