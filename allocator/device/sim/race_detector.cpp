#include "allocator/device/sim/race_detector.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/check.hpp"

namespace cistern::sim {

// ---- Lanes -------------------------------------------------------------------------------------

LaneId RaceDetector::openLane() {
  if (!enabled_) return 0;
  // A closed lane is reused once the host knows all its work to be complete. The new work is then
  // ordered after it anyway, and clocks do not grow with every stream ever made.
  const auto reusable = std::find_if(closed_.begin(), closed_.end(), [&](LaneId lane) {
    return host_.at(lane) >= lanes_[lane].tick;
  });
  if (reusable != closed_.end()) {
    const LaneId lane = *reusable;
    closed_.erase(reusable);
    // The lane's old clock may hold the targets of its last waits, which order nothing now.
    lanes_[lane].clock = host_;
    lanes_[lane].moment = nullptr;
    return lane;
  }
  lanes_.emplace_back();
  return static_cast<LaneId>(lanes_.size() - 1);
}

void RaceDetector::closeLane(LaneId lane) {
  if (enabled_) closed_.push_back(lane);
}

RaceDetector::Lane& RaceDetector::freshLane(LaneId id) {
  Lane& lane = lanes_[id];
  if (lane.host_version != host_version_) {
    lane.clock.join(host_);
    lane.host_version = host_version_;
    lane.moment = nullptr;
  }
  return lane;
}

Moment RaceDetector::momentOf(LaneId id) {
  if (!enabled_) return nullptr;
  Lane& lane = freshLane(id);
  if (lane.moment == nullptr) lane.moment = std::make_shared<const VectorClock>(lane.clock);
  return lane.moment;
}

void RaceDetector::follow(LaneId id, const Moment& moment) {
  if (!enabled_ || moment == nullptr) return;
  lanes_[id].clock.join(*moment);
  lanes_[id].moment = nullptr;
}

void RaceDetector::observe(const Moment& moment) {
  if (!enabled_ || moment == nullptr) return;
  host_.join(*moment);
  ++host_version_;
}

void RaceDetector::observeAll() {
  if (!enabled_) return;
  for (LaneId lane = 0; lane < lanes_.size(); ++lane) host_.set(lane, lanes_[lane].tick);
  ++host_version_;
}

// ---- Work --------------------------------------------------------------------------------------

void RaceDetector::run(LaneId id, std::shared_ptr<const WorkTag> tag,
                       const std::vector<Span>& spans) {
  Lane& lane = freshLane(id);
  lane.clock.set(id, ++lane.tick);
  lane.moment = nullptr;
  touchAll({id, lane.tick}, lane.clock, std::move(tag), spans);
}

RaceDetector::GraphRun RaceDetector::beginGraph(LaneId stream, const std::vector<LaneId>& lanes,
                                                const Moment& previous) {
  GraphRun run;
  if (!enabled_) return run;
  follow(stream, previous);  // two launches of one graph never overlap
  run.base = freshLane(stream).clock;
  run.now = run.base;
  run.lanes = lanes;
  for (const LaneId lane : lanes) run.ticks.push_back(lanes_[lane].tick);
  return run;
}

void RaceDetector::runNode(GraphRun& run, const GraphOrder& order, NodeId node,
                           std::shared_ptr<const WorkTag> tag, const std::vector<Span>& spans) {
  for (std::size_t i = 0; i < run.lanes.size(); ++i) {
    run.now.set(run.lanes[i], run.ticks[i] + order.reachAt(node, i));
  }
  const std::uint32_t own = order.laneOf(node);
  const LaneId lane = run.lanes[own];
  lanes_[lane].tick = run.ticks[own] + order.reachAt(node, own);
  touchAll({lane, lanes_[lane].tick}, run.now, std::move(tag), spans);
}

Moment RaceDetector::endGraph(GraphRun& run, const GraphOrder& order, LaneId stream) {
  if (!enabled_) return nullptr;
  for (std::size_t i = 0; i < run.lanes.size(); ++i) {
    const std::uint64_t tick = run.ticks[i] + order.sizeOf(i);
    run.base.set(run.lanes[i], tick);
    lanes_[run.lanes[i]].clock.set(run.lanes[i], tick);
  }
  auto end = std::make_shared<const VectorClock>(run.base);
  follow(stream, end);
  return end;
}

void RaceDetector::touchAll(Epoch epoch, const VectorClock& before,
                            std::shared_ptr<const WorkTag> tag, const std::vector<Span>& spans) {
  for (const Span& span : spans) {
    const Touch touch{epoch, span.address - span.offset, tag};
    conflicts_.clear();
    shadows_[span.backing->id()].touch(span.offset, span.offset + span.bytes, span.kind, touch,
                                       before, conflicts_);
    for (const Conflict& conflict : conflicts_) reportRace(touch, span.kind, conflict);
    if (span.view != 0) noteUse(span.view, touch);
  }
}

void RaceDetector::noteUse(std::uint64_t view, const Touch& touch) {
  std::vector<Touch>& uses = uses_[view];
  const auto same_lane = std::find_if(uses.begin(), uses.end(), [&](const Touch& use) {
    return use.epoch.lane == touch.epoch.lane;
  });
  if (same_lane != uses.end()) {
    *same_lane = touch;
  } else {
    uses.push_back(touch);
  }
}

// ---- Memory ------------------------------------------------------------------------------------

void RaceDetector::unmap(Address address, const std::vector<std::uint64_t>& views) {
  if (!enabled_) return;
  for (const std::uint64_t view : views) {
    const auto it = uses_.find(view);
    if (it == uses_.end()) continue;
    for (const Touch& use : it->second) {
      if (host_.covers(use.epoch)) continue;
      add({RaceReport::Kind::kUnmapInUse,
           {use.work->name, use.work->stream, use.base, false},
           {"unmap", {}, address, true},
           fmt::format("unmap at {:#x}: '{}' on stream {} uses the mapping at {:#x} and is not "
                       "known to be complete",
                       address, use.work->name, use.work->stream.raw, use.base)});
    }
    uses_.erase(it);
  }
}

// ---- Reports -----------------------------------------------------------------------------------

void RaceDetector::reportRace(const Touch& touch, AccessKind kind, const Conflict& conflict) {
  const bool writes = kind == AccessKind::kWrite;
  const Touch& earlier = conflict.earlier;
  const auto verb = [](bool write) { return write ? "writes" : "reads"; };
  add({RaceReport::Kind::kRace,
       {earlier.work->name, earlier.work->stream, earlier.base + conflict.offset,
        conflict.earlier_writes},
       {touch.work->name, touch.work->stream, touch.base + conflict.offset, writes},
       fmt::format("race: '{}' on stream {} {} {:#x}, '{}' on stream {} {} {:#x}, the same memory, "
                   "and nothing orders them",
                   earlier.work->name, earlier.work->stream.raw, verb(conflict.earlier_writes),
                   earlier.base + conflict.offset, touch.work->name, touch.work->stream.raw,
                   verb(writes), touch.base + conflict.offset)});
}

void RaceDetector::reportIllegal(const std::string& work, Stream stream, const Access& access,
                                 const std::string& why) {
  if (!enabled_) return;
  add({RaceReport::Kind::kIllegalAccess,
       {},
       {work, stream, access.address, access.kind == AccessKind::kWrite},
       fmt::format("illegal access: '{}' on stream {}: {}", work, stream.raw, why)});
}

void RaceDetector::add(RaceReport report) {
  if (reports_.size() < kMaxReports) reports_.push_back(std::move(report));
}

void RaceDetector::audit() const {
  for (const auto& [backing, shadow] : shadows_) shadow.audit();
  for (LaneId lane = 0; lane < lanes_.size(); ++lane) {
    CISTERN_CHECK(lanes_[lane].clock.at(lane) <= lanes_[lane].tick);
    CISTERN_CHECK(host_.at(lane) <= lanes_[lane].tick);
  }
}

}  // namespace cistern::sim
