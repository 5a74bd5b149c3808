#include "interop/command/replay/script.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

namespace cistern::command {
namespace {

using recording::EventKind;

class ScriptMaker {
 public:
  explicit ScriptMaker(const recording::Recording& recording)
      : recording_(recording), streams_(recording.streams.size(), kNone) {
    script_.name = recording.name;
    script_.peak_requested = peakRequested(recording);
    script_.stream_uses = recording.stream_uses;
    script_.steps.reserve(recording.events.size());
    slots_.reserve(recording.allocations);
    (void)streamNumber(0);
    findUsesThatEnd();
    for (const recording::Event& event : recording.events) {
      if (event.isCall()) add(event);
    }
  }
  Script take() { return std::move(script_); }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  void add(const recording::Event& event) {
    Step step;
    step.after_us = timeUntil(event);
    step.kind = kindOf(event);
    if (step.kind == StepKind::kAllocate) {
      step.bytes = event.value;
      step.slot = takeSlot();
      step.stream = streamNumber(event.stream);
      slots_.push_back(step.slot);
    } else {
      step.slot = slots_[event.value];
      if (step.kind != StepKind::kFreeWhileUsed) vacant_.push_back(step.slot);
    }
    script_.steps.push_back(step);
  }

  std::uint32_t timeUntil(const recording::Event& event) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
    if (!recording_.has_times) return 0;
    const std::uint64_t last_us = std::exchange(script_.duration_us, event.time_us);
    return std::uint32_t(std::min(event.time_us - last_us, kMost));
  }

  StepKind kindOf(const recording::Event& event) const {
    if (event.kind == EventKind::kAllocate) return StepKind::kAllocate;
    if (event.kind == EventKind::kUsesEnd) return StepKind::kUsesEnd;
    return used_[event.value] ? StepKind::kFreeWhileUsed : StepKind::kFree;
  }

  void findUsesThatEnd() {
    used_.resize(recording_.allocations);
    for (const recording::Event& event : recording_.events) {
      if (event.kind == EventKind::kUsesEnd) used_[event.value] = true;
    }
  }

  // Streams are numbered as calls name them, and 0 is the default one.
  std::uint32_t streamNumber(std::uint32_t stream) {
    std::uint32_t& number = streams_[stream];
    if (number != kNone) return number;
    script_.stream_names.push_back(recording_.streams[stream]);
    return number = script_.streams++;
  }

  // The slot that was left last is the likeliest to be in the cache.
  std::uint32_t takeSlot() {
    if (vacant_.empty()) return script_.slots++;
    const std::uint32_t slot = vacant_.back();
    vacant_.pop_back();
    return slot;
  }

  const recording::Recording& recording_;
  Script script_;
  std::vector<std::uint32_t> streams_;  ///< by the recording's numbers
  std::vector<bool> used_;              ///< by allocation: other streams' uses outlast its free
  std::vector<std::uint32_t> slots_;    ///< by allocation
  std::vector<std::uint32_t> vacant_;   ///< slots without a block
};

}  // namespace

Script makeScript(const recording::Recording& recording) { return ScriptMaker(recording).take(); }

}  // namespace cistern::command
