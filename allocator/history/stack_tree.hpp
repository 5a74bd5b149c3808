// All call stacks of a history. Stacks that share callers share their nodes, so they form a tree.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/history/hashed_numbers.hpp"

namespace cistern {

/// A stack is the number of its innermost frame's node; 0 is the empty stack. Thread-safe.
class StackTree {
 public:
  struct Node {
    std::uint32_t parent = 0;  ///< the callers' stack; less than the node's own number
    std::uintptr_t word = 0;   ///< the frame
  };

  /// The stack of these frames, innermost first. 0 if the host is short of memory, or for a new
  /// stack when there are kMost nodes.
  std::uint32_t intern(std::span<const std::uintptr_t> words) noexcept;
  /// Pre: 0 < stack, which intern() has returned, or a parent of such.
  Node node(std::uint32_t stack) const noexcept {
    const MutexLock lock(mutex_);
    return nodes_[stack];
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 24;

  bool isStack(std::uint32_t stack, std::span<const std::uintptr_t> words) const noexcept
      CISTERN_REQUIRES(mutex_);
  std::uint32_t child(std::uint32_t parent, std::uintptr_t word) CISTERN_REQUIRES(mutex_);

  mutable Mutex mutex_{LockRank::kHistoryStacks};
  std::vector<Node> nodes_ CISTERN_GUARDED_BY(mutex_) = std::vector<Node>(1);
  HashedNumbers children_ CISTERN_GUARDED_BY(mutex_);  ///< nodes, by parent and word
  HashedNumbers whole_ CISTERN_GUARDED_BY(mutex_);     ///< stacks, by all their words
};

}  // namespace cistern
