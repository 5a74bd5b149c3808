// A captured graph: its work, and the nodes that each piece follows. Immutable once its capture
// ended, and shared by the graph, its executables and their launches.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "allocator/device/sim/graph_order.hpp"
#include "allocator/device/sim/queued_work.hpp"
#include "allocator/device/sim/shadow.hpp"
#include "cistern/types.hpp"

namespace cistern::sim {

/// Invariant: works, tags and after have one entry for each node; after[i] names nodes less than i.
struct GraphBody {
  std::uint64_t capture = 0;  ///< the id of the capture that made it, its own alone
  std::vector<std::shared_ptr<const Work>> works;
  std::vector<std::shared_ptr<const WorkTag>> tags;
  std::vector<std::vector<NodeId>> after;
  GraphOrder order;

  std::size_t size() const { return works.size(); }
  GraphNode handleOf(NodeId node) const { return {(capture << 32) | node}; }
  /// Replaces the content of `handles` by those of `nodes`.
  void handlesOf(const std::vector<NodeId>& nodes, std::vector<GraphNode>& handles) const {
    handles.clear();
    for (const NodeId node : nodes) handles.push_back(handleOf(node));
  }
};

/// The capture of a handle's node, and the node's number there.
inline std::uint64_t captureOf(GraphNode handle) { return handle.raw >> 32; }
inline NodeId nodeOf(GraphNode handle) { return static_cast<NodeId>(handle.raw); }

}  // namespace cistern::sim
