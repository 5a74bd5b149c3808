#include "allocator/history/stack_tree.hpp"

#include <new>

namespace cistern {

// As a rule the whole stack is known: then one search finds it.
std::uint32_t StackTree::intern(std::span<const std::uintptr_t> words) noexcept try {
  std::uint64_t hash = words.size();
  for (const std::uintptr_t word : words) hash = mixed(hash, word);
  const MutexLock lock(mutex_);
  const std::uint32_t known = whole_.find(hash, [&](std::uint32_t stack) {
    mutex_.assertHeld();
    return isStack(stack, words);
  });
  if (known != 0 || words.empty()) return known;
  if (nodes_.size() + words.size() > kMost) return 0;
  std::uint32_t stack = 0;
  for (std::size_t i = words.size(); i-- > 0;) stack = child(stack, words[i]);
  whole_.add(hash, stack);
  return stack;
} catch (const std::bad_alloc&) {
  return 0;
}

bool StackTree::isStack(std::uint32_t stack, std::span<const std::uintptr_t> words) const noexcept {
  for (const std::uintptr_t word : words) {
    if (stack == 0 || nodes_[stack].word != word) return false;
    stack = nodes_[stack].parent;
  }
  return stack == 0;
}

std::uint32_t StackTree::child(std::uint32_t parent, std::uintptr_t word) {
  const std::uint64_t hash = mixed(mixed(0, parent), word);
  const std::uint32_t known = children_.find(hash, [&](std::uint32_t node) {
    mutex_.assertHeld();
    return nodes_[node].parent == parent && nodes_[node].word == word;
  });
  if (known != 0) return known;
  nodes_.push_back({parent, word});
  const auto number = std::uint32_t(nodes_.size() - 1);
  try {
    children_.add(hash, number);
  } catch (...) {
    nodes_.pop_back();
    throw;
  }
  return number;
}

}  // namespace cistern
