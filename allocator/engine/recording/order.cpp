#include "allocator/engine/recording/order.hpp"

#include <algorithm>

namespace cistern {

bool CaptureOrder::reachOf(const Nodes& frontier, Reach& reach) {
  reach.assign(lanes_.size(), 0);
  for (const GraphNode node : frontier) {
    if (!visit(node)) return false;
    add(places_.at(node), reach);
  }
  return true;
}

bool CaptureOrder::follows(const Reach& reach, GraphNode node) const {
  const auto it = places_.find(node);
  if (it == places_.end()) return false;
  const Place& place = it->second;
  return place.lane < reach.size() && reach[place.lane] >= place.number;
}

// Depth first, without recursion: a capture may be one chain of many thousand nodes.
bool CaptureOrder::visit(GraphNode first) {
  if (places_.contains(first)) return true;
  std::size_t depth = 0;
  const auto enter = [&](GraphNode node) {
    if (depth == stack_.size()) stack_.emplace_back();  // its list is used again and again
    Visit& visit = stack_[depth++];
    visit.node = node;
    visit.next = 0;
    return device_.nodeDependencies(node, visit.before).ok();
  };
  if (!enter(first)) return false;
  while (depth > 0) {
    Visit& top = stack_[depth - 1];
    if (top.next == top.before.size()) {
      settle(top);
      --depth;
      continue;
    }
    const GraphNode before = top.before[top.next++];
    if (!places_.contains(before) && !enter(before)) return false;
  }
  return true;
}

// Pre: all before it have their places.
void CaptureOrder::settle(const Visit& visited) {
  Reach& reach = scratch_;
  reach.assign(lanes_.size(), 0);
  for (const GraphNode before : visited.before) add(places_.at(before), reach);
  Place place;
  place.lane = laneFor(reach);
  reach.resize(lanes_.size(), 0);
  place.number = reach[place.lane] = ++lanes_[place.lane];
  place.reach = reaches_.size();
  place.width = std::uint32_t(reach.size());
  reaches_.insert(reaches_.end(), reach.begin(), reach.end());
  places_.emplace(visited.node, place);
}

// One whose last node comes before: it can go on there.
std::uint32_t CaptureOrder::laneFor(const Reach& reach) {
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (reach[lane] == lanes_[lane]) return lane;
  }
  lanes_.push_back(0);
  return std::uint32_t(lanes_.size() - 1);
}

void CaptureOrder::add(const Place& place, Reach& reach) const {
  if (reach.size() < place.width) reach.resize(place.width, 0);
  for (std::uint32_t lane = 0; lane < place.width; ++lane) {
    reach[lane] = std::max(reach[lane], reaches_[place.reach + lane]);
  }
}

}  // namespace cistern
