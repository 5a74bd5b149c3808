// A tree that only grows, whose nodes have numbers: call stacks, and labels. The owner guards it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace cistern {

/// Node 0 is the root. No two children of a node have the same value.
template <class Value>
class NumberedTree {
 public:
  struct Node {
    std::uint32_t parent = 0;  ///< less than the node's own number
    Value value{};
    auto operator<=>(const Node&) const = default;
  };

  std::size_t size() const { return nodes_.size(); }
  const Node& operator[](std::uint32_t number) const { return nodes_[number]; }
  /// The number of that child, which is made if there is none. 0 for a new one when there are
  /// `most` nodes. Throws std::bad_alloc, changing nothing but that a number may stay unused.
  std::uint32_t child(const Node& node, std::size_t most) {
    const auto known = numbers_.find(node);
    if (known != numbers_.end()) return known->second;
    if (nodes_.size() >= most) return 0;
    const auto number = std::uint32_t(nodes_.size());
    nodes_.push_back(node);
    numbers_.emplace(node, number);
    return number;
  }

 private:
  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::map<Node, std::uint32_t> numbers_;  ///< of all but the root
};

}  // namespace cistern
