// A log of memory that is put behind addresses, and taken away from there, while somebody wants to
// know.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/engine/ground/observer.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

/// Thread-safe. While it is off, and nobody listens, two loads are all that it costs.
class MemoryLog {
 public:
  static constexpr std::size_t kLeast = 65'536;

  /// Whether somebody wants to know.
  bool on() const noexcept {
    return keeps_.load(std::memory_order_relaxed) ||
           listener_.load(std::memory_order_relaxed) != nullptr;
  }
  void set(bool on) {
    const MutexLock lock(mutex_);
    keeps_.store(on, std::memory_order_relaxed);
    if (!on) events_ = {};
  }
  /// Tells `listener` of each event from now on, or (null) nobody. It outlives the log.
  void listen(Observer* listener) noexcept { listener_.store(listener, std::memory_order_relaxed); }
  /// If the host is short of memory, the event is lost.
  void note(const MemoryEvent& event) noexcept {
    if (Observer* const listener = listener_.load(std::memory_order_relaxed))
      listener->changed(event);
    const MutexLock lock(mutex_);
    if (!keeps_.load(std::memory_order_relaxed)) return;
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
  std::atomic<bool> keeps_{false};
  std::atomic<Observer*> listener_{nullptr};
  Mutex mutex_{LockRank::kMemoryLog};
  std::vector<MemoryEvent> events_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
