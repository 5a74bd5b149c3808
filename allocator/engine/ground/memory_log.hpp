// A log of memory that is put behind addresses, and taken away from there, while somebody wants to
// know.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

/// Thread-safe. While it is off, one load is all that it costs.
class MemoryLog {
 public:
  static constexpr std::size_t kLeast = 65'536;

  bool on() const noexcept { return on_.load(std::memory_order_relaxed); }
  void set(bool on) {
    const MutexLock lock(mutex_);
    on_.store(on, std::memory_order_relaxed);
    if (!on) events_ = {};
  }
  /// If the host is short of memory, the event is lost.
  void note(const MemoryEvent& event) noexcept {
    const MutexLock lock(mutex_);
    if (!on()) return;
    if (events_.size() == 2 * kLeast) events_.erase(events_.begin(), events_.begin() + kLeast);
    try {
      events_.push_back(event);
    } catch (const std::bad_alloc&) {
    }
  }
  std::vector<MemoryEvent> take() {
    const MutexLock lock(mutex_);
    return std::exchange(events_, {});
  }

 private:
  std::atomic<bool> on_{false};
  Mutex mutex_{LockRank::kMemoryLog};
  std::vector<MemoryEvent> events_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
