#include "allocator/engine/capture/order.hpp"

#include <utility>

namespace cistern {

// Without recursion: a capture may be one chain of many thousand nodes.
bool CaptureOrder::extend(Past& past, const Nodes& frontier) {
  Nodes& unseen = past.unseen;
  unseen.insert(unseen.end(), frontier.begin(), frontier.end());
  while (!unseen.empty()) {
    const GraphNode node = unseen.back();
    if (past.nodes.contains(node)) {
      unseen.pop_back();
      continue;
    }
    const Nodes* const before = dependenciesOf(node);
    if (before == nullptr) return false;
    unseen.pop_back();
    past.nodes.insert(node);
    unseen.insert(unseen.end(), before->begin(), before->end());
  }
  return true;
}

// Null when the device does not tell.
const CaptureOrder::Nodes* CaptureOrder::dependenciesOf(GraphNode node) {
  const auto known = dependencies_.find(node);
  if (known != dependencies_.end()) return &known->second;
  Nodes before;
  if (!device_.nodeDependencies(node, before).ok()) return nullptr;
  return &dependencies_.emplace(node, std::move(before)).first->second;
}

}  // namespace cistern
