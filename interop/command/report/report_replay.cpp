#include "interop/command/report/report_replay.hpp"

#include <algorithm>
#include <utility>

#include "interop/command/replay/policy.hpp"
#include "interop/command/replay/replayer.hpp"
#include "interop/command/replay/stage.hpp"
#include "interop/command/report/column_watch.hpp"
#include "interop/command/report/placing_policy.hpp"

namespace cistern::command {
namespace {

constexpr std::uint64_t kMostCapacity = 8'192 * kGiB;  // models keep some bytes for each page of it

/// A device that serves the script under any policy.
ReplaySettings stageSettings(const Script& script) {
  ReplaySettings stage;
  stage.device = "sim";
  stage.capacity =
      std::max(kDefaultSimCapacity, std::min(4 * script.peak_requested, kMostCapacity));
  return stage;
}

report::PolicyCurve finished(std::string_view name, const Replayer& replayer, bool served,
                             ColumnWatch& watch) {
  report::PolicyCurve curve;
  curve.name = name;
  curve.peak = watch.peak();
  curve.reserved = watch.columns();
  if (served) return curve;
  curve.failed_at_us = watch.nextUs();
  curve.failure = replayer.failure();
  return curve;
}

std::string_view reasonAgainst(const PolicyKind& kind, const recording::Recording& recording) {
  if (kind.waits_for_uses && recording.stream_uses == recording::StreamUses::kMissing)
    return "The recording does not say until when other streams use freed blocks.";
  return {};
}

recording::EventKind kindOf(MemoryAction action) {
  switch (action) {
    case MemoryAction::kSegmentAlloc:
      return recording::EventKind::kReserve;
    case MemoryAction::kSegmentFree:
      return recording::EventKind::kRelease;
    case MemoryAction::kPageMap:
      return recording::EventKind::kMap;
    case MemoryAction::kPageUnmap:
      break;
  }
  return recording::EventKind::kUnmap;
}

/// Takes what changes in the memory of policy cistern, at each step that changes some.
class PlacingWatch final : public ColumnWatch {
 public:
  PlacingWatch(PlacingPolicy& policy, const recording::Recording& recording, const Stage& stage,
               const std::vector<std::uint32_t>& streams, ReportReplay::Placing& placing)
      : ColumnWatch(policy, recording),
        placing_policy_(policy),
        stage_(stage),
        streams_(streams),
        placing_(placing) {}

  void look() override {
    if (placing_policy_.misses() == misses_) return;
    misses_ = placing_policy_.misses();
    ColumnWatch::look();
    for (const MemoryEvent& change : placing_policy_.takeChanges()) {
      recording::Event event{nowUs(),         change.bytes,       0, kindOf(change.action),
                             change.location, change.stays_mapped};
      if (const auto number = stage_.numberOf(change.stream)) event.stream = streams_[*number];
      placing_.memory.push_back(event);
      placing_.places.push_back({change.address});
      placing_.before.push_back(event_before());
    }
  }

 private:
  /// The step that made the change has been counted already.
  std::uint32_t event_before() const { return event() == 0 ? 0 : event() - 1; }

  PlacingPolicy& placing_policy_;
  const Stage& stage_;
  const std::vector<std::uint32_t>& streams_;
  ReportReplay::Placing& placing_;
  std::uint64_t misses_ = 0;
};

}  // namespace

ReportReplay::ReportReplay(const recording::Recording& recording, const ReportSettings& settings)
    : recording_(recording), settings_(settings), script_(makeScript(recording)) {
  for (const std::uint64_t name : script_.stream_names) {
    const auto at = std::find(recording.streams.begin(), recording.streams.end(), name);
    streams_.push_back(std::uint32_t(at - recording.streams.begin()));
  }
}

report::PolicyCurve ReportReplay::curve(std::string_view policy,
                                        const OnProgress& on_progress) const {
  const PolicyKind& kind = policyKind(policy);
  Stage stage(stageSettings(script_), script_.streams);
  report::PolicyCurve none;
  none.name = policy;
  none.failure = kind.lacks(stage.device());
  if (none.failure.empty()) none.failure = reasonAgainst(kind, recording_);
  if (!none.failure.empty()) return none;
  const auto capacity = kind.takes_capacity ? settings_.capacity : std::nullopt;
  const auto made = kind.make(stage.device(), {settings_.options, capacity});
  ColumnWatch watch(*made, recording_);
  Replayer replayer(script_, stage, *made, nullptr, &watch, 1);
  const bool served = replayer.round(on_progress);
  return finished(policy, replayer, served, watch);
}

ReportReplay::Placing ReportReplay::place(const OnProgress& on_progress) const {
  Placing placing;
  Stage stage(stageSettings(script_), script_.streams);
  Options options = settings_.options;
  options.background_thread = false;  // as in a replay: see cistern_policy.cpp
  PlacingPolicy policy(stage.device(), options);
  PlacingWatch watch(policy, recording_, stage, streams_, placing);
  Replayer replayer(script_, stage, policy, nullptr, &watch, 1);
  const bool served = replayer.round(on_progress);
  placing.curve = finished("cistern", replayer, served, watch);
  placing.addresses = policy.addresses();
  return placing;
}

}  // namespace cistern::command
