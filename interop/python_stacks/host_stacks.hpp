// The stacks of threads that run no Python, as those of PyTorch that compute gradients.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <unordered_map>

#include "allocator/history/host_stack.hpp"

namespace cistern::python {

/// Stacks of C++, without the innermost frames that are Cistern's own. Thread-safe.
class HostStacks {
 public:
  std::size_t gather(std::uintptr_t* words, std::size_t most) noexcept {
    const std::size_t count = gatherHostStack(words, std::min(most, kMost));
    std::size_t own = 0;
    while (own < count && isOwn(words[own])) ++own;
    std::copy(words + own, words + count, words);
    return count - own;
  }

 private:
  static constexpr std::size_t kMost = 32;  ///< of a thread that serves others, all that differs

  /// The extension under PyTorch is no part of the library, and is known by its names.
  bool isOwn(std::uintptr_t word) noexcept try {
    const std::lock_guard lock(mutex_);
    const auto known = own_.find(word);
    if (known != own_.end()) return known->second;
    return own_.emplace(word, hostFrameOf(word).function.rfind("cistern", 0) == 0).first->second;
  } catch (const std::exception&) {
    return false;
  }

  std::mutex mutex_;
  std::unordered_map<std::uintptr_t, bool> own_;  ///< of the frames that were innermost
};

}  // namespace cistern::python
