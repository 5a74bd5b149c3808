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
#include "cistern/report.hpp"

namespace cistern {

class MemoryListener {
 public:
  virtual ~MemoryListener() = default;
  /// Memory comes from the device, or goes there. Under any lock.
  virtual void changed(const MemoryEvent& event) noexcept = 0;
};

/// Thread-safe. While it is off, and nobody listens, a load is all that it costs.
class MemoryLog {
 public:
  static constexpr std::size_t kLeast = 65'536;

  /// Whether somebody wants to know.
  bool on() const noexcept { return wanted_.load(std::memory_order_relaxed) != 0; }
  /// Whether hooks do (hooked_memory.hpp), which the log itself does not call.
  void setHooks(bool on) noexcept { want(kHooks, on); }
  void set(bool on) {
    const MutexLock lock(mutex_);
    want(kKeeps, on);
    if (!on) events_ = {};
  }
  /// Tells `listener` of each event from now on, or (null) nobody. It outlives the log.
  void listen(MemoryListener* listener) noexcept {
    listener_.store(listener, std::memory_order_relaxed);
    want(kListener, listener != nullptr);
  }
  /// If the host is short of memory, the event is lost.
  void note(const MemoryEvent& event) noexcept {
    if (MemoryListener* const listener = listener_.load(std::memory_order_relaxed))
      listener->changed(event);
    const MutexLock lock(mutex_);
    if ((wanted_.load(std::memory_order_relaxed) & kKeeps) == 0) return;
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
  enum : std::uint8_t { kKeeps = 1, kListener = 2, kHooks = 4 };
  void want(std::uint8_t who, bool on) noexcept {
    on ? wanted_.fetch_or(who, std::memory_order_relaxed)
       : wanted_.fetch_and(std::uint8_t(~who), std::memory_order_relaxed);
  }

  std::atomic<std::uint8_t> wanted_{0};  ///< by whom
  std::atomic<MemoryListener*> listener_{nullptr};
  Mutex mutex_{LockRank::kMemoryLog};
  std::vector<MemoryEvent> events_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
