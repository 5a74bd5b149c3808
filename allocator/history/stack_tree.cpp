#include "allocator/history/stack_tree.hpp"

#include <new>

namespace cistern {

// As a rule the whole stack is known: then one search finds it.
std::uint32_t StackTree::intern(std::span<const std::uintptr_t> words) noexcept try {
  std::uint64_t hash = words.size();
  for (const std::uintptr_t word : words) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  const MutexLock lock(mutex_);
  const auto known = whole_.find(hash);
  if (known != whole_.end() && isStack(known->second, words)) return known->second;
  if (nodes_.size() + words.size() > kMost) return 0;
  std::uint32_t stack = 0;
  for (std::size_t i = words.size(); i-- > 0;) stack = nodes_.child({stack, words[i]}, kMost);
  whole_[hash] = stack;
  return stack;
} catch (const std::bad_alloc&) {
  return 0;
}

bool StackTree::isStack(std::uint32_t stack, std::span<const std::uintptr_t> words) const noexcept {
  for (const std::uintptr_t word : words) {
    if (stack == 0 || nodes_[stack].value != word) return false;
    stack = nodes_[stack].parent;
  }
  return stack == 0;
}

}  // namespace cistern
