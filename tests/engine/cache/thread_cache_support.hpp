// What the tests of the threads' caches share: a thread that does one thing after another when it
// is told to, and is idle between them, with its caches full.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "tests/engine/engine_support.hpp"
#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::test {

/// Leaves `count` blocks of that size in the calling thread's cache, as far as that takes them. In
/// two rounds: at the first low water after a growth everything goes back to the heap.
inline void leaveCached(CachingAllocator& allocator, std::size_t count, std::size_t bytes,
                        Stream stream) {
  for (int round = 0; round < 2; ++round) {
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < count; ++i) blocks.push_back(allocator.allocate(bytes, stream));
    for (void* block : blocks) allocator.free(block);
  }
}

class IdleThread {
 public:
  IdleThread() : thread_([this] { serve(); }) {}
  ~IdleThread() { end(); }
  IdleThread(const IdleThread&) = delete;
  IdleThread& operator=(const IdleThread&) = delete;

  /// Does it on that thread, and waits until it is done. It must not throw.
  void run(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    task_ = std::move(task);
    changed_.notify_all();
    changed_.wait(lock, [this] { return task_ == nullptr; });
  }
  /// Allocates, or frees, there.
  void* allocate(CachingAllocator& allocator, std::size_t bytes, Stream stream) {
    void* block = nullptr;
    run([&] { block = allocator.allocate(bytes, stream); });
    return block;
  }
  void free(CachingAllocator& allocator, void* block) {
    run([&] { allocator.free(block); });
  }
  /// Leaves `count` blocks of that size in its cache, as far as that takes them.
  void keep(CachingAllocator& allocator, std::size_t count, std::size_t bytes, Stream stream) {
    run([&] { leaveCached(allocator, count, bytes, stream); });
  }
  /// The thread is over when it returns.
  void end() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ended_ || task_ != nullptr; });
      if (task_ == nullptr) return;
      task_();
      task_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> task_;
  bool ended_ = false;
  std::thread thread_;
};

/// A device on which every cache gets what it may keep.
inline sim::SimConfig roomySim() { return simOf(16 * kGiB); }

}  // namespace cistern::test
