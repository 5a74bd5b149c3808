// Reports two pieces of queued work that touch the same memory with nothing to order them. Also
// reports memory that goes away under work that may still run. Happens-before by vector clocks: see
// Note [What orders work] below. Under the simulated device's lock. Read next: shadow.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "allocator/device/sim/graph_order.hpp"
#include "allocator/device/sim/queued_work.hpp"
#include "allocator/device/sim/shadow.hpp"
#include "allocator/device/sim/vector_clock.hpp"

namespace cistern::sim {

// Note [What orders work]
// Work is ordered after
//   - earlier work of its stream, or of the graph nodes that it depends on;
//   - the work that an event had recorded, once its stream has waited for the event;
//   - the work that the host knew to be complete when it queued this work: it saw a query return
//     true, or waited for an event, a stream or the device. The host counts as one: all its threads
//     know what any of them saw. So an ordering that two threads forgot to make between themselves
//     is not reported.
// Virtual time counts for nothing: work that happened to be over is still a race.

class RaceDetector {
 public:
  static constexpr std::size_t kMaxReports = 1'000;  ///< kept; later ones are dropped

  explicit RaceDetector(bool enabled) : enabled_(enabled) {}
  bool enabled() const { return enabled_; }

  // ---- Lanes. When the detector is off, these do nothing and moments are null. -----------------

  /// A lane whose work is ordered after what the host knows to be complete.
  LaneId openLane();
  /// No more work will come on the lane; what it has still counts.
  void closeLane(LaneId lane);
  /// The point that the lane's queue has reached.
  Moment momentOf(LaneId lane);
  /// Work queued on the lane from now on is ordered after that moment.
  void follow(LaneId lane, const Moment& moment);
  /// The host has seen that all work before the moment is complete.
  void observe(const Moment& moment);
  /// The host has seen that all work queued so far is complete.
  void observeAll();

  // ---- Work. -----------------------------------------------------------------------------------

  /// The next piece of work on the lane touches `spans`. Pre: enabled.
  void run(LaneId lane, std::shared_ptr<const WorkTag> tag, const std::vector<Span>& spans);

  /// One launch of a graph; all of it follows `base`.
  struct GraphRun {
    VectorClock base;
    VectorClock now;  ///< of the node at hand; scratch
    std::vector<LaneId> lanes;
    std::vector<std::uint64_t> ticks;  ///< of each lane when the launch began
  };
  GraphRun beginGraph(LaneId stream, const std::vector<LaneId>& lanes, const Moment& previous);
  /// Pre: enabled; nodes come in order.
  void runNode(GraphRun& run, const GraphOrder& order, NodeId node,
               std::shared_ptr<const WorkTag> tag, const std::vector<Span>& spans);
  /// The stream's queue goes on after all nodes; returns the moment when they are done.
  Moment endGraph(GraphRun& run, const GraphOrder& order, LaneId stream);

  // ---- Memory. ---------------------------------------------------------------------------------

  /// The mappings at `address` are about to go: reports work that may still use them.
  void unmap(Address address, const std::vector<std::uint64_t>& views);
  /// The memory of that backing went back to the device.
  void forget(std::uint64_t backing) { shadows_.erase(backing); }

  // ---- Reports. --------------------------------------------------------------------------------

  void reportIllegal(const std::string& work, Stream stream, const Access& access,
                     const std::string& why);
  const std::vector<RaceReport>& reports() const { return reports_; }
  void clearReports() { reports_.clear(); }
  void audit() const;

 private:
  struct Lane {
    VectorClock clock;               ///< what the lane's next piece of work is ordered after
    std::uint64_t tick = 0;          ///< clock.at(the lane itself)
    std::uint64_t host_version = 0;  ///< of the host's knowledge that is in the clock
    Moment moment;                   ///< a copy of the clock, while it is one
  };

  Lane& freshLane(LaneId lane);
  void touchAll(Epoch epoch, const VectorClock& before, std::shared_ptr<const WorkTag> tag,
                const std::vector<Span>& spans);
  void noteUse(std::uint64_t view, const Touch& touch);
  void reportRace(const Touch& touch, AccessKind kind, const Conflict& conflict);
  void add(RaceReport report);

  bool enabled_;
  std::vector<Lane> lanes_;
  std::vector<LaneId> closed_;
  VectorClock host_;
  std::uint64_t host_version_ = 1;
  std::unordered_map<std::uint64_t, Shadow> shadows_;           ///< by backing
  std::unordered_map<std::uint64_t, std::vector<Touch>> uses_;  ///< by view: the last of each lane
  std::vector<Conflict> conflicts_;                             ///< scratch
  std::vector<RaceReport> reports_;
};

}  // namespace cistern::sim
