// Which recorded work follows which, within one capture that is under way. A stream that has waited
// for another follows what that had recorded by then; the driver knows it as the nodes that the
// stream's next work would depend on, its frontier.
//
// Nodes are laid on few lanes, each a chain in which one follows the other, and a node's reach says
// how far along each lane the work before it goes. So one comparison answers whether a follows b.
// A node is looked at once, whatever is asked later; nothing is looked at until something is asked.
// No lock of its own.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cistern/device.hpp"

namespace cistern {

class CaptureOrder {
 public:
  using Nodes = std::vector<GraphNode>;
  /// By lane: how many of its nodes come before. Shorter ones have zeros behind.
  using Reach = std::vector<std::uint32_t>;

  explicit CaptureOrder(Device& device) : device_(device) {}

  /// What work recorded behind `frontier` would follow. False when the device does not tell; then
  /// nothing is known to be followed. Throws std::bad_alloc.
  bool reachOf(const Nodes& frontier, Reach& reach);
  /// Whether what has that reach follows the node. Nodes that no reach ever touched are followed by
  /// none.
  bool follows(const Reach& reach, GraphNode node) const;

 private:
  struct Place {
    std::uint32_t lane = 0;
    Reach reach;  ///< the node itself is among what it says
  };

  bool visit(GraphNode node);
  void settle(GraphNode node, const Nodes& before);
  std::uint32_t laneFor(const Reach& reach);
  void add(GraphNode node, Reach& reach) const;

  Device& device_;
  std::unordered_map<GraphNode, Place> places_;
  std::vector<std::uint32_t> lanes_;  ///< how many nodes each has
};

}  // namespace cistern
