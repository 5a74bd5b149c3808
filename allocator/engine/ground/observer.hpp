// The hook for the library that records what happens to an allocator's memory (allocator/history).
// The engine knows no more of it than this.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/thread_scope.hpp"
#include "cistern/report.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

class Heap;

/// Where a request comes from, in numbers that only the observer can read.
struct RequestOrigin {
  std::uint64_t recording = 0;  ///< `stack` is a number of this one
  std::uint32_t stack = 0;
  std::uint32_t label = 0;
};

/// While it lives, the calling thread's requests have this origin.
class OriginScope : public ThreadScope<OriginScope> {
 public:
  explicit OriginScope(const RequestOrigin& origin) noexcept : origin_(origin) {}
  /// That of the request that the calling thread is in; an empty one for none.
  static RequestOrigin current() noexcept {
    return innermost() == nullptr ? RequestOrigin{} : innermost()->origin_;
  }

 private:
  const RequestOrigin origin_;
};

/// Is told of an allocator's memory from observe() on (core/core.hpp). It lives as long as the
/// allocator. Meanwhile no request hits a cache, because a hit tells nobody: every block goes
/// through its heap.
class Observer {
 public:
  virtual ~Observer() = default;

  /// The origin of a request of the calling thread. No lock is held: it may call the program.
  virtual RequestOrigin originOfRequest() noexcept = 0;

  // ---- Under the lock of the block's heap, so that the events of an address are in order.

  virtual void allocated(Address address, std::uint64_t bytes, Stream stream,
                         MempoolId_t pool) noexcept = 0;
  /// `pending`: other streams still use the block, until usesEnded().
  virtual void freed(Address address, bool pending) noexcept = 0;
  /// Also of blocks that were not freed so: allocators set free memory aside, too.
  virtual void usesEnded(Address address) noexcept = 0;

  /// Memory comes from the device, or goes there. Under any lock.
  virtual void changed(const MemoryEvent& event) noexcept = 0;
  /// A request has found no memory. It may set report.dump. No lock is held. Called as long as the
  /// observer lives, also while it is told of nothing else.
  virtual void failed(OutOfMemoryReport& report) noexcept = 0;
  /// Checks what it knows against the heaps; aborts if they differ. Pre: all heaps are held.
  virtual void audit(const std::vector<Heap*>& heaps) const = 0;
};

// ---- The log of memory -------------------------------------------------------------------------
//
// A log of memory that is put behind addresses, and taken away from there, while somebody wants to
// know.

/// Thread-safe. While it is off, and nobody listens, a load is all that it costs.
class MemoryLog {
 public:
  static constexpr std::size_t kLeast = 65'536;

  /// Whether somebody wants to know.
  bool on() const noexcept { return wanted_.load(std::memory_order_relaxed) != 0; }
  void set(bool on) {
    const MutexLock lock(mutex_);
    want(kKeeps, on);
    if (!on) events_ = {};
  }
  /// Tells `listener` of each event from now on, or (null) nobody. It outlives the log.
  void listen(Observer* listener) noexcept {
    listener_.store(listener, std::memory_order_relaxed);
    want(kListener, listener != nullptr);
  }
  /// If the host is short of memory, the event is lost.
  void note(const MemoryEvent& event) noexcept {
    if (Observer* const listener = listener_.load(std::memory_order_relaxed))
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
  enum : std::uint8_t { kKeeps = 1, kListener = 2 };
  void want(std::uint8_t who, bool on) noexcept {
    on ? wanted_.fetch_or(who, std::memory_order_relaxed)
       : wanted_.fetch_and(std::uint8_t(~who), std::memory_order_relaxed);
  }

  std::atomic<std::uint8_t> wanted_{0};  ///< by whom
  std::atomic<Observer*> listener_{nullptr};
  Mutex mutex_{LockRank::kMemoryLog};
  std::vector<MemoryEvent> events_ CISTERN_GUARDED_BY(mutex_);
};

}  // namespace cistern
