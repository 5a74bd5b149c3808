// Which recorded work follows which, within one capture that is under way. A stream that has waited
// for another follows what that had recorded by then; the driver knows it as the nodes that the
// stream's next work would depend on, its frontier.
//
// What a stream follows is kept as a set of nodes, which is made up to the frontier of the moment
// when somebody asks. So a question costs one look-up, a node is looked at once for each stream
// that asks, and the device tells once what it depends on. No lock of its own.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cistern/device.hpp"

namespace cistern {

class CaptureOrder {
 public:
  using Nodes = std::vector<GraphNode>;
  /// What a stream's next work would follow.
  struct Past {
    std::unordered_set<GraphNode> nodes;
    Nodes unseen{};  ///< is part of it too, with all before: where the device did not tell
  };

  explicit CaptureOrder(Device& device) : device_(device) {}

  /// The past of a stream that has come to `frontier` by now. False when the device does not tell;
  /// then it lacks some of its nodes until it does. Throws std::bad_alloc; then it may lack some
  /// for good, which is as safe.
  bool extend(Past& past, const Nodes& frontier) {
    Nodes& unseen = past.unseen;
    unseen.insert(unseen.end(), frontier.begin(), frontier.end());
    while (!unseen.empty()) {  // no recursion: a capture may be a chain of many thousand nodes
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

 private:
  // Null when the device does not tell.
  const Nodes* dependenciesOf(GraphNode node) {
    const auto known = dependencies_.find(node);
    if (known != dependencies_.end()) return &known->second;
    Nodes before;
    if (!device_.nodeDependencies(node, before).ok()) return nullptr;
    return &dependencies_.emplace(node, std::move(before)).first->second;
  }

  Device& device_;
  std::unordered_map<GraphNode, Nodes> dependencies_;
};

}  // namespace cistern
