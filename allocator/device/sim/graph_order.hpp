// The order within a graph, computed once when its capture ends. Its nodes are laid on few lanes.
// Each node knows how far along every lane the work before it reaches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cistern::sim {

using NodeId = std::uint32_t;

/// Invariant: the nodes of a lane follow each other, so that node n of it (from 1) has reachAt n.
class GraphOrder {
 public:
  GraphOrder() = default;
  /// `after[i]` are the nodes that node i follows. Pre: each is less than i.
  explicit GraphOrder(const std::vector<std::vector<NodeId>>& after);

  std::size_t width() const { return lane_sizes_.size(); }
  std::uint32_t laneOf(NodeId node) const { return lanes_[node]; }
  /// How far along `lane` the work up to and including `node` reaches.
  std::uint32_t reachAt(NodeId node, std::size_t lane) const {
    return lane < reach_[node].size() ? reach_[node][lane] : 0;
  }
  std::uint32_t sizeOf(std::size_t lane) const { return lane_sizes_[lane]; }

 private:
  std::uint32_t pickLane(const std::vector<std::uint32_t>& reached);

  std::vector<std::uint32_t> lanes_;               ///< by node
  std::vector<std::uint32_t> lane_sizes_;          ///< by lane: how many nodes it has
  std::vector<std::vector<std::uint32_t>> reach_;  ///< by node; lanes made later are not in it
};

}  // namespace cistern::sim
