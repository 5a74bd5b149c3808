// A captured graph whose memory comes from a private pool and stays in place while the graph lives.
//
//   idle --captureBegin--> capturing --captureEnd--> captured --replay, as often as you like
//    ^                         |                         |
//    +---- abandon, failure ---+--------- reset ---------+
//
// Memory that any thread allocates on a stream that has joined the capture comes from the pool.
// Graphs may share a pool when they are replayed one after another in the order of their captures.
// Each may use what the earlier ones have freed. Graphs that may run at the same time must not
// share one; the simulated device's race detector reports it when they do.
//
// docs/streams-and-capture.md answers users' questions.
#pragma once

#include <memory>
#include <string>

#include "cistern/pool.hpp"

namespace cistern {

class CapturedGraph;

/// A verb that the graph's state does not allow; names that state. Nothing was changed.
class CISTERN_API GraphError : public Error {
 public:
  using Error::Error;
};

/// Not thread-safe, except for allocations while it captures. Throws DeviceFailure where the device
/// refuses. A capture that fails at any step leaves everything as it was before captureBegin.
class CISTERN_API Graph {
 public:
  explicit Graph(Pools& pools);
  /// Abandons its capture, if any, and resets it.
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Begins to record the work queued on `stream`, which must not be the default one, and on
  /// streams that wait for it. Memory comes from `pool`, which is made if it does not exist; with
  /// {0, 0}, from a pool of the graph's own. PoolError if the pool is captured into, or has a scope
  /// with a filter on streams, already.
  void captureBegin(Stream stream, MempoolId_t pool = {}, CaptureMode mode = CaptureMode::kGlobal);
  /// For a stream that another capture records (the body of a conditional node): from now on,
  /// memory allocated on it belongs to this capture too, until this capture ends.
  void includeStream(Stream stream);
  /// Ends recording. If the device refuses, the capture has failed and is over, unless the device
  /// goes on recording. The device goes on if another thread began the capture in a mode that is
  /// not relaxed: the calling thread may not end it. Then the capture goes on too, and that other
  /// thread may end it.
  void captureEnd();
  /// Ends recording and discards what was recorded. Only blocks that the program holds are left. On
  /// a thread that may not end it (captureEnd), the device goes on recording; the program must end
  /// that.
  void abandon() noexcept;
  /// Makes the graph ready to run. replay does so if the program has not.
  void instantiate();
  /// Queues the graph's work on `stream`. One call to the device. On a stream that is being
  /// captured into another graph, the work becomes part of that graph. That graph then keeps this
  /// one's memory in place too.
  ///
  /// GraphError, and nothing was queued, while memory of the graph sleeps (Pools::sleep).
  void replay(Stream stream);
  /// Whether all replays that were queued so far are known to be complete. Waits for nothing. A
  /// replay on a stream that is being captured now is not known to be. GraphError unless captured.
  bool idle();
  /// Lets go of the graph. Its memory returns to the pool when the queued replays are complete.
  /// No-op unless captured: abandon ends a capture that is under way.
  void reset() noexcept;

  bool capturing() const;
  /// The pool it captures or has captured into; {0, 0} when idle.
  MempoolId_t pool() const;
  /// Writes the captured graph in DOT.
  void debugDump(const std::string& path);

 private:
  void start(Stream stream, CaptureMode mode);
  void discard() noexcept;
  void destroy() noexcept;

  PoolRegistry& pools_;
  std::shared_ptr<CapturedGraph> memory_;  ///< null when idle
  Stream origin_;                          ///< the capture began on it
  DeviceGraph graph_;                      ///< what was captured
  DeviceGraphExec exec_;                   ///< its executable form; null until it is instantiated
};

/// The memory of a graph that the program itself captures and launches, with its runtime's calls.
/// For code that captures already.
///
///   cudaStreamBeginCapture(stream, mode);
///   memory.captureBegin(stream);         // from here on requests on the stream are the graph's
///   …
///   memory.captureEnd();
///   cudaStreamEndCapture(stream, &graph);
///   …
///   {
///     GraphMemory::Launch launch(memory, stream);  // around each launch
///     cudaGraphLaunch(exec, stream);
///   }
///   …
///   cudaGraphExecDestroy(exec);
///   memory.reset();
///
/// Not thread-safe, except for allocations while it captures.
class CISTERN_API GraphMemory {
 public:
  explicit GraphMemory(Pools& pools);
  /// Ends the capture, if any, and resets it.
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  /// From now on memory allocated on `stream`, which is being captured, and on streams that join
  /// its capture comes from `pool`. Graph::captureBegin describes the pool. GraphError unless idle;
  /// InvalidArgument for a stream that is not being captured.
  void captureBegin(Stream stream, MempoolId_t pool = {});
  /// As Graph::includeStream.
  void includeStream(Stream stream);
  /// No more memory is allocated for the graph. Its memory stays in place until reset. Call this
  /// before or after the capture itself ends, also when it ended in nothing. GraphError unless
  /// capturing.
  void captureEnd();
  /// Call this before the graph is launched on `stream`. Nobody else gets its memory before that
  /// launch is complete. If `stream` is being captured into another graph here, that graph keeps
  /// the memory in place too. GraphError unless captured, and while memory of the graph sleeps.
  ///
  /// From here to launched() the graph's addresses are bound to their memory: its pools do not fall
  /// asleep, and the graph is not idle.
  void launching(Stream stream);
  /// Call this after that launch, queued or failed. GraphError unless captured.
  void launched();
  /// A launch, for a scope: launching at its beginning, and launched at its end.
  class Launch {
   public:
    Launch(GraphMemory& memory, Stream stream) : memory_(memory) { memory_.launching(stream); }
    ~Launch() { memory_.endLaunch(); }
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;

   private:
    GraphMemory& memory_;
  };
  /// As Graph::idle. Between launching and launched it is not.
  bool idle();
  /// The graph is gone. Its memory returns to the pool when the queued launches are complete. No-op
  /// unless captured: captureEnd ends a capture that is under way.
  void reset() noexcept;

  bool capturing() const;
  /// The pool it captures or has captured into; {0, 0} when idle.
  MempoolId_t pool() const;

 private:
  void endLaunch() noexcept;

  PoolRegistry& pools_;
  std::shared_ptr<CapturedGraph> memory_;  ///< null when idle
};

/// A capture for a scope. The capture is over however the scope is left.
class GraphCapture {
 public:
  GraphCapture(Graph& graph, Stream stream, MempoolId_t pool = {},
               CaptureMode mode = CaptureMode::kGlobal)
      : graph_(graph) {
    graph_.captureBegin(stream, pool, mode);
  }
  /// Abandons the capture unless end() was called.
  ~GraphCapture() {
    if (!ended_) graph_.abandon();
  }
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;

  /// Keeps what was captured. Throws as captureEnd does. If the capture then goes on, end may be
  /// called again, and leaving the scope abandons it.
  void end() {
    const Ending ending{*this};
    graph_.captureEnd();
  }

 private:
  struct Ending {
    GraphCapture& capture;
    ~Ending() { capture.ended_ = capture.ended_ || !capture.graph_.capturing(); }
  };

  Graph& graph_;
  bool ended_ = false;
};

}  // namespace cistern
