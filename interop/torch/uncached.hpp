// Blocks straight from the CUDA runtime, while torch.cuda.memory.caching_allocator_enable(False) is
// in force.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <unordered_set>

namespace cistern_torch {

/// Thread-safe.
class Uncached {
 public:
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }
  void want(bool value) { wanted_.store(value, std::memory_order_relaxed); }

  /// On the current device. Throws torch.OutOfMemoryError.
  void* allocate(std::size_t bytes);
  /// False for a pointer that is not from here.
  bool free(void* pointer);
  bool holds(void* pointer);

 private:
  std::atomic<bool> wanted_{false};
  std::atomic<std::size_t> count_{0};  ///< blocks_.size()
  std::mutex mutex_;
  std::unordered_set<void*> blocks_;
};

}  // namespace cistern_torch
