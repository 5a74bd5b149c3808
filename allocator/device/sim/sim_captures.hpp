// The captures that are under way: the streams of each, its recorded work, and the calls that it
// forbids. Under the simulated device's lock, except for the thread's own mode. Read next:
// graph_body.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "allocator/device/sim/graph_body.hpp"
#include "cistern/device.hpp"
#include "cistern/status.hpp"
#include "cistern/types.hpp"

namespace cistern::sim {

/// The calling thread's capture mode, for all devices; kGlobal at first.
CaptureMode& threadCaptureMode();

/// A point that an event marked in a capture: work that waits for it follows `nodes`.
struct CapturedPoint {
  std::uint64_t capture = 0;
  std::vector<NodeId> nodes;
};

class Captures {
 public:
  bool any() const { return !captures_.empty(); }
  CaptureInfo infoOf(Stream stream) const;
  /// infoOf, and the nodes that the stream's next work would follow; none without an active
  /// capture.
  CaptureInfo frontierOf(Stream stream, std::vector<GraphNode>& nodes) const;
  /// The recorded work of the capture with that id; null when it is not active. Valid until the
  /// next call that is not const.
  const GraphBody* bodyOf(std::uint64_t id) const;

  /// Fails when the stream is capturing. Pre: not the default stream.
  Status begin(Stream stream, CaptureMode mode);
  /// Ends the capture and returns its graph. It has ended also on failure, unless the stream or the
  /// thread is not the one that began it.
  Result<std::shared_ptr<const GraphBody>> end(Stream stream);

  /// Whether the calling thread may not make a call that could wait for the device. If so, the
  /// attempt breaks the captures that forbid it.
  bool forbidUnsafeCall();
  /// Breaks the stream's capture, if it is in one.
  void invalidate(Stream stream);

  // ---- Queueing on a stream in a capture. Pre: infoOf(stream).status != kNone. -----------------

  /// Appends a node to the stream's queue in its capture.
  void append(Stream stream, std::shared_ptr<const Work> work);
  /// Appends all nodes of a graph, as one piece of work.
  void appendGraph(Stream stream, const GraphBody& body);
  CapturedPoint pointOf(Stream stream) const;

  /// `stream` waits for a point in a capture, and joins that capture if it is in none. The status
  /// is for Call::kWaitEvent.
  Status wait(Stream stream, const CapturedPoint& point);

  void audit() const;

 private:
  struct Capture {
    std::uint64_t id = 0;
    Stream origin;
    CaptureMode mode{};
    std::thread::id owner;
    bool invalidated = false;
    GraphBody body;
    std::map<Stream, std::vector<NodeId>> frontiers;  ///< what the next work of a stream follows
  };

  Capture* of(Stream stream);
  const Capture* of(Stream stream) const;
  static bool forbids(const Capture& capture, CaptureMode mode);
  static bool joined(const Capture& capture);
  NodeId add(Capture& capture, Stream stream, std::shared_ptr<const Work> work,
             std::vector<NodeId> after);

  std::map<std::uint64_t, Capture> captures_;  ///< by id
};

}  // namespace cistern::sim
