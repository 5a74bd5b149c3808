#include "allocator/device/sim/graph_order.hpp"

#include <algorithm>

namespace cistern::sim {

GraphOrder::GraphOrder(const std::vector<std::vector<NodeId>>& after) {
  lanes_.reserve(after.size());
  reach_.reserve(after.size());
  for (const std::vector<NodeId>& before : after) {
    std::vector<std::uint32_t> reached(lane_sizes_.size());
    for (const NodeId node : before) {
      for (std::size_t lane = 0; lane < reach_[node].size(); ++lane) {
        reached[lane] = std::max(reached[lane], reach_[node][lane]);
      }
    }
    const std::uint32_t lane = pickLane(reached);
    reached.resize(lane_sizes_.size());
    reached[lane] = ++lane_sizes_[lane];
    lanes_.push_back(lane);
    reach_.push_back(std::move(reached));
  }
}

// A node may go on any lane whose nodes so far all happen before it. So a graph has about as many
// lanes as it is wide, however often its branches fork and join.
std::uint32_t GraphOrder::pickLane(const std::vector<std::uint32_t>& reached) {
  for (std::uint32_t lane = 0; lane < reached.size(); ++lane) {
    if (reached[lane] == lane_sizes_[lane]) return lane;
  }
  lane_sizes_.push_back(0);
  return static_cast<std::uint32_t>(lane_sizes_.size() - 1);
}

}  // namespace cistern::sim
