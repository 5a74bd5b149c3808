// Blocks straight from the CUDA runtime. They are used while
// torch.cuda.memory.caching_allocator_enable(False) is in force, and in a process that has
// PYTORCH_NO_CUDA_MEMORY_CACHING. With the latter, compute-sanitizer sees where one block ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <unordered_set>
#include <vector>

namespace cistern_torch {

/// Thread-safe.
class Uncached {
 public:
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }
  /// Whether the program has switched caching off.
  bool switchedOff() const { return off_.load(std::memory_order_relaxed); }
  void switchOff(bool value) {
    off_ = value;
    wanted_ = value || always_;
  }
  /// When a device is first used: a script may set the variable in its first lines.
  void readEnvironment() {
    always_ = std::getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != nullptr;
    wanted_ = off_ || always_;
  }

  /// On the current device. Throws torch.OutOfMemoryError.
  void* allocate(std::size_t bytes);
  /// False for a pointer that is not from here. A block that CUDA does not take back now, as in a
  /// capture, goes at a later call.
  bool free(void* pointer);
  bool holds(void* pointer);

 private:
  void freeLeft();

  std::atomic<bool> always_{false};
  std::atomic<bool> off_{false};
  std::atomic<bool> wanted_{false};    ///< off_ || always_
  std::atomic<std::size_t> count_{0};  ///< blocks_.size()
  std::mutex mutex_;
  std::unordered_set<void*> blocks_;
  std::vector<void*> left_;  ///< freed by the program, which CUDA did not take back yet
};

}  // namespace cistern_torch
