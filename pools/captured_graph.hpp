// A graph's memory, from its capture until nothing can replay it any more: a use of its pool, the
// addresses that must stay where they are, and the streams that it was launched on.
//
//   begin, started --> capturing --end--> captured --launching, launched: as often as you like
//                         |                  |
//                       unwind             reset
//
// The program's Graph, or GraphMemory, holds it in between; so do the graphs that it has become
// part of, and, after its reset, the queued replays (captured_graphs.hpp). When the last of them
// lets go, so does this. The engine's LiveCapture is there while it is captured. This
// file does not know what the device made of the graph: graph.cpp does.
//
// Not thread-safe, except for allocations meanwhile.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "allocator/engine/capture/live_capture.hpp"
#include "pools/captured_graphs.hpp"

namespace cistern {

struct PoolRegistry;

class CapturedGraph : public std::enable_shared_from_this<CapturedGraph> {
 public:
  /// Adds itself to the users of the pool, and makes the pool if it does not exist. The pool is
  /// captured into from now on. Throws what its parts do.
  static std::shared_ptr<CapturedGraph> begin(PoolRegistry& pools, Stream origin, MempoolId_t pool);
  /// For begin.
  CapturedGraph(PoolRegistry& pools, MempoolId_t pool);
  /// Lets go of the pool's use and the memory. Calls nothing of the program's.
  ~CapturedGraph();
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  MempoolId_t pool() const { return pool_; }
  bool capturing() const { return capture_ != nullptr; }

  // ---- While it is captured

  /// The device records the capture `id` on the stream.
  void started(Stream stream, std::uint64_t id) { capture_->begin(stream, id); }
  void include(Stream stream);
  /// The graph keeps the memory that it has touched.
  void end() noexcept;

  /// The capture has come to nothing, and the device does not record any more. The pool's growth
  /// goes back, or, if the host is short of memory, lies free in the pool. The graph is null
  /// afterwards.
  static void unwind(std::shared_ptr<CapturedGraph>& graph) noexcept;

  // ---- Once it is captured

  /// Throws GraphError while memory of the graph sleeps, std::bad_alloc, DeviceFailure, changing
  /// nothing.
  void launching(Stream stream);
  /// The launch that was announced last is queued, or has failed.
  void launched() noexcept;
  /// Whether no launch is announced, and all that were queued are known to be complete.
  bool idle() noexcept;

  /// The program lets go of the graph, which is null afterwards.
  static void reset(std::shared_ptr<CapturedGraph>& graph) noexcept;

  /// Whether memory of the pool is part of it.
  bool holds(MempoolId_t pool) const { return holdsAny({pool}); }
  /// Whether memory of any of the pools is.
  bool holdsAny(const std::set<MempoolId_t>& pools) const;
  /// Appends to the ranges of each pool in `of` what it and the graphs within it write there and
  /// the program may read. Throws std::bad_alloc.
  void addResultsTo(ResultsOfPools& of) const;

 private:
  friend CapturedGraphs;
  void record(Stream origin);
  void stopRecording() noexcept;
  bool launchedInCapture(Stream stream);

  PoolRegistry& pools_;
  const MempoolId_t pool_;
  std::shared_ptr<LiveCapture> capture_;        ///< null unless it captures
  std::uint64_t reserved_before_ = UINT64_MAX;  ///< by the pool, when the capture began
  Footprint footprint_;  ///< the memory; each of its graphs is a CapturedGraph
  CapturedGraphs::Launches launches_;
};

// ---- For the program's objects, whose graph is null when they are idle

enum class GraphState : std::uint8_t { kIdle, kCapturing, kCaptured };

inline GraphState stateOf(const std::shared_ptr<CapturedGraph>& graph) {
  if (graph == nullptr) return GraphState::kIdle;
  return graph->capturing() ? GraphState::kCapturing : GraphState::kCaptured;
}
inline MempoolId_t poolOf(const std::shared_ptr<CapturedGraph>& graph) {
  return graph ? graph->pool() : MempoolId_t{};
}
/// Throws GraphError, which names the verb and the state, unless the state is `allowed`. Throws
/// Error in a child of fork.
void requireState(PoolRegistry& pools, const std::shared_ptr<CapturedGraph>& graph,
                  GraphState allowed, const char* verb);

}  // namespace cistern
