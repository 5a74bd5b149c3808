// The memory of one graph: of its capture while that is under way, then of the graph until it is
// reset. It does not know whether the device is recording, or what the device made of it: graph.cpp
// does.
//
//   idle --begin, started--> capturing --end--> captured --launching, as often as you like
//    ^                          |                  |
//    +--------- unwind ---------+----- reset ------+
//
// Pre of each verb: the state that its arrow leaves. Not thread-safe, except for allocations
// meanwhile.
#pragma once

#include <list>
#include <memory>

#include "pools/captured.hpp"
#include "pools/pool_registry.hpp"

namespace cistern {

enum class GraphState : std::uint8_t { kIdle, kCapturing, kCaptured };

class CapturedMemory {
 public:
  explicit CapturedMemory(PoolRegistry& pools) : pools_(pools) {}
  CapturedMemory(const CapturedMemory&) = delete;
  CapturedMemory& operator=(const CapturedMemory&) = delete;

  bool is(GraphState state) const { return state_ == state; }
  MempoolId_t pool() const { return pool_; }
  PoolRegistry& pools() const { return pools_; }
  /// Throws GraphError, which names the verb and the state, unless the state is `allowed`. Throws
  /// Error in a child of fork.
  void require(GraphState allowed, const char* verb) const;

  /// Makes the pool if it does not exist ({0, 0}: one of the graph's own). Throws what its parts
  /// do; then the state is idle again.
  void begin(Stream origin, MempoolId_t pool);
  /// The device records the capture `id` on the stream.
  void started(Stream stream, std::uint64_t id);
  /// Requires the state that it needs.
  void include(Stream stream);
  /// The graph keeps the memory that it has touched.
  void end() noexcept;
  /// The capture has come to nothing, and the device does not record any more. The pool's growth
  /// goes back, or, if the host is short of memory, lies free in the pool.
  void unwind() noexcept;
  /// Throws GraphError while memory of the graph sleeps, std::bad_alloc, DeviceFailure, changing
  /// nothing.
  void launching(Stream stream);
  /// The launch that was announced last is queued, or has failed.
  void launched() noexcept;
  /// Whether no launch is announced, and all that were queued are known to be complete.
  bool idle() noexcept { return pools_.living.idle(living_); }
  void reset() noexcept;

 private:
  std::shared_ptr<Recording> record(Stream origin);
  Footprint stopRecording() noexcept;
  bool launchedInCapture(Stream stream);

  PoolRegistry& pools_;
  GraphState state_ = GraphState::kIdle;
  MempoolId_t pool_;                      ///< {0, 0} when idle
  std::shared_ptr<Recording> recording_;  ///< while it captures
  std::uint64_t reserved_before_ = 0;     ///< by the pool, when the capture began
  std::shared_ptr<Captured> held_;        ///< the pool's use and memory; null when idle
  /// One, while there is a capture or a graph: the part that will be left of it. Made before it is
  /// needed, so that a graph can be reset even if the host is out of memory.
  std::list<DeferredRelease> deferred_release_;
  std::list<LivingGraph> record_;  ///< one, while there is a capture, for `living_`
  LivingGraphs::Place living_;     ///< while there is a graph
};

}  // namespace cistern
