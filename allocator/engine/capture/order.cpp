#include "allocator/engine/capture/order.hpp"

#include <algorithm>
#include <utility>

namespace cistern {

bool CaptureOrder::reachOf(const Nodes& frontier, Reach& reach) {
  reach.clear();
  for (const GraphNode node : frontier) {
    if (!visit(node)) return false;
    add(node, reach);
  }
  return true;
}

bool CaptureOrder::follows(const Reach& reach, GraphNode node) const {
  const auto it = places_.find(node);
  if (it == places_.end()) return false;
  const auto& [lane, own] = it->second;
  return lane < reach.size() && reach[lane] >= own[lane];
}

// Depth first, without recursion: a capture may be one chain of many thousand nodes.
bool CaptureOrder::visit(GraphNode first) {
  struct Visit {
    GraphNode node;
    Nodes before;
    std::size_t next = 0;  // of `before`, to look at
  };
  std::vector<Visit> stack;
  const auto enter = [&](GraphNode node) {
    if (places_.contains(node)) return true;
    stack.push_back({node, {}});
    return device_.nodeDependencies(node, stack.back().before).ok();
  };
  if (!enter(first)) return false;
  while (!stack.empty()) {
    Visit& top = stack.back();
    if (top.next < top.before.size()) {
      if (!enter(top.before[top.next++])) return false;
    } else {
      settle(top.node, top.before);
      stack.pop_back();
    }
  }
  return true;
}

// Pre: all before it have their places.
void CaptureOrder::settle(GraphNode node, const Nodes& before) {
  Place place;
  for (const GraphNode one : before) add(one, place.reach);
  place.lane = laneFor(place.reach);
  place.reach.resize(lanes_.size());
  place.reach[place.lane] = ++lanes_[place.lane];
  places_.emplace(node, std::move(place));
}

// One whose last node comes before: it can go on there.
std::uint32_t CaptureOrder::laneFor(const Reach& reach) {
  for (std::uint32_t lane = 0; lane < reach.size(); ++lane) {
    if (reach[lane] == lanes_[lane]) return lane;
  }
  lanes_.push_back(0);
  return std::uint32_t(lanes_.size() - 1);
}

// Pre: the node has its place.
void CaptureOrder::add(GraphNode node, Reach& reach) const {
  const Reach& of = places_.at(node).reach;
  if (reach.size() < of.size()) reach.resize(of.size());
  for (std::size_t lane = 0; lane < of.size(); ++lane)
    reach[lane] = std::max(reach[lane], of[lane]);
}

}  // namespace cistern
