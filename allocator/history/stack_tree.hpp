// All call stacks of a history. Stacks that share callers share their nodes, so they form a tree.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>

#include "allocator/base/mutex.hpp"
#include "allocator/history/numbered_tree.hpp"

namespace cistern {

/// A stack is the number of its innermost frame's node; 0 is the empty stack. Thread-safe.
class StackTree {
 public:
  using Node = NumberedTree<std::uintptr_t>::Node;  ///< a frame; its parent is the callers' stack

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

  mutable Mutex mutex_{LockRank::kHistoryStacks};
  NumberedTree<std::uintptr_t> nodes_ CISTERN_GUARDED_BY(mutex_);
  /// By the hash of all its words: the stack that was found last.
  std::unordered_map<std::uint64_t, std::uint32_t> whole_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
