#include "interop/command/replay/script.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace cistern::command {
namespace {

class ScriptMaker {
 public:
  explicit ScriptMaker(const trace::Trace& trace) {
    script_.name = trace.name;
    script_.streams = std::uint32_t(trace.streams);
    script_.stream_names = trace.stream_names;
    script_.peak_requested = trace.peak_requested_bytes;
    script_.duration_us = trace.duration_us;
    script_.steps.reserve(trace.events.size());
    script_.stream_uses = trace.stream_uses;
    slots_.reserve(trace.allocations);
    findUsesThatEnd(trace);
    for (const trace::TraceEvent& event : trace.events) add(event);
  }
  Script take() { return std::move(script_); }

 private:
  void add(const trace::TraceEvent& event) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    Step step;
    step.after_us = std::uint32_t(std::min(event.delta_us, most));
    step.kind = kindOf(event);
    if (step.kind == StepKind::kAllocate) {
      step.bytes = event.value;
      step.slot = takeSlot();
      step.stream = std::uint32_t(event.stream);
      slots_.push_back(step.slot);
    } else {
      step.slot = slots_[event.value];
      if (step.kind != StepKind::kFreeWhileUsed) vacant_.push_back(step.slot);
    }
    script_.steps.push_back(step);
  }

  StepKind kindOf(const trace::TraceEvent& event) const {
    switch (event.kind) {
      case trace::EventKind::kAllocate:
        return StepKind::kAllocate;
      case trace::EventKind::kFree:
        return used_[event.value] ? StepKind::kFreeWhileUsed : StepKind::kFree;
      case trace::EventKind::kUsesEnd:
        break;
    }
    return StepKind::kUsesEnd;
  }

  void findUsesThatEnd(const trace::Trace& trace) {
    used_.resize(trace.allocations);
    for (const trace::TraceEvent& event : trace.events) {
      if (event.kind == trace::EventKind::kUsesEnd) used_[event.value] = true;
    }
  }

  // The slot that was left last is the likeliest to be in the cache.
  std::uint32_t takeSlot() {
    if (vacant_.empty()) return script_.slots++;
    const std::uint32_t slot = vacant_.back();
    vacant_.pop_back();
    return slot;
  }

  Script script_;
  std::vector<bool> used_;             ///< by allocation: other streams' uses outlast its free
  std::vector<std::uint32_t> slots_;   ///< by allocation
  std::vector<std::uint32_t> vacant_;  ///< slots without a block
};

}  // namespace

Script makeScript(const trace::Trace& trace) { return ScriptMaker(trace).take(); }

}  // namespace cistern::command
