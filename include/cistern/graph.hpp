// A captured graph whose memory comes from a private pool and stays in place while the graph lives.
//
//   idle --captureBegin--> capturing --captureEnd--> captured --replay, as often as you like
//    ^                         |                         |
//    +---- abandon, failure ---+--------- reset ---------+
//
// What is allocated on any stream that has joined the capture, by any thread, comes from the pool.
// Graphs may share a pool when they are replayed one after another in the order of their captures:
// each may use what the ones before it have freed. Graphs that may run at the same time must not
// share one; the simulated device's race detector sees it when they do.
//
// docs/streams-and-capture.md answers what a user asks.
#pragma once

#include <memory>
#include <string>

#include "cistern/pool.hpp"

namespace cistern {

class CapturedMemory;
struct DeviceCapture;

/// A verb on a graph that its state does not allow; names that state. Nothing was changed.
class CISTERN_API GraphError : public Error {
 public:
  using Error::Error;
};

/// Not thread-safe, but for allocations while it captures. Throws DeviceFailure where the device
/// says no; a capture that fails at any step leaves everything as it was before captureBegin.
class CISTERN_API Graph {
 public:
  explicit Graph(Pools& pools);
  /// Abandons its capture, if there is one, and resets it.
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  /// Begins to record what is queued on `stream`, which must not be the default one, and on streams
  /// that wait for it. Memory comes from `pool`, which is made if it is not there; {0, 0}: from a
  /// pool of the graph's own. PoolError when that is being captured into already.
  void captureBegin(Stream stream, MempoolId_t pool = {}, CaptureMode mode = CaptureMode::kGlobal);
  /// What is allocated on `stream`, which another capture records (the body of a conditional node),
  /// belongs to this capture too, until it ends.
  void includeStream(Stream stream);
  /// Ends recording. Where the device refuses, the capture has failed and is over, unless the
  /// device goes on recording, as it does where the calling thread may not end what another one
  /// began in a mode that is not relaxed: then the capture goes on too, and that thread may end it.
  void captureEnd();
  /// Ends recording and throws what was recorded away. Nothing else is left of it, but for blocks
  /// that the program holds; and on a thread that may not end it (captureEnd) the device goes on
  /// recording, which is the program's to end then.
  void abandon() noexcept;
  /// Makes the graph ready to run; replay does so when it was not done.
  void instantiate();
  /// Queues the graph's work on `stream`. One call to the device. On a stream that is being
  /// captured into another graph the work becomes part of that, which then keeps this one's memory
  /// in place too.
  void replay(Stream stream);
  /// Lets go of the graph. Its memory is the pool's again when replays that are queued are
  /// complete. No-op unless captured: abandon ends a capture that is under way.
  void reset() noexcept;

  bool capturing() const;
  /// The pool it captures or has captured into; {0, 0} when idle.
  MempoolId_t pool() const;
  /// Writes the captured graph in DOT.
  void debugDump(const std::string& path);

 private:
  void require(bool allowed, const char* verb) const;

  std::unique_ptr<DeviceCapture> state_;
};

/// The memory of a graph that the program captures and launches by itself, with the calls of its
/// runtime: for code that captures already.
///
///   cudaStreamBeginCapture(stream, mode);
///   memory.captureBegin(stream);         // from here on requests on the stream are the graph's
///   …
///   memory.captureEnd();
///   cudaStreamEndCapture(stream, &graph);
///   …
///   memory.launching(stream);            // before each launch
///   cudaGraphLaunch(exec, stream);
///   …
///   cudaGraphExecDestroy(exec);
///   memory.reset();
///
/// Not thread-safe, but for allocations while it captures.
class CISTERN_API GraphMemory {
 public:
  explicit GraphMemory(Pools& pools);
  /// Ends the capture, if there is one, and resets it.
  ~GraphMemory();
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  /// What is allocated on `stream`, which is being captured, and on streams that join its capture
  /// comes from `pool`, as Graph::captureBegin says. GraphError unless idle; InvalidArgument for a
  /// stream that is not being captured.
  void captureBegin(Stream stream, MempoolId_t pool = {});
  /// As Graph::includeStream.
  void includeStream(Stream stream);
  /// Nothing more is allocated for the graph; what was stays in place until reset. Call it before
  /// the capture itself ends, or after, when it ended in nothing too. GraphError unless capturing.
  void captureEnd();
  /// The graph is about to be launched on `stream`: its memory is not anyone else's before that is
  /// complete. On a stream that is being captured into another graph here, that keeps the memory in
  /// place too. GraphError unless captured.
  void launching(Stream stream);
  /// The graph is gone. Its memory is the pool's again when launches that are queued are complete.
  /// No-op unless captured: captureEnd ends a capture that is under way.
  void reset() noexcept;

  bool capturing() const;
  /// The pool it captures or has captured into; {0, 0} when idle.
  MempoolId_t pool() const;

 private:
  std::unique_ptr<CapturedMemory> memory_;
};

/// A capture for a scope: whatever way the scope is left, the capture is over.
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

  /// Keeps what was captured. Throws as captureEnd does. Where the capture goes on, end may be
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
