// A mutex that clang's thread-safety analysis understands (-Wthread-safety), and the macros that
// declare which lock guards what. With other compilers the annotations vanish.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/base/check.hpp"
#include "allocator/base/lock_order.hpp"

#if defined(__clang__)
#define CISTERN_TSA(x) __attribute__((x))
#else
#define CISTERN_TSA(x)
#endif

#define CISTERN_GUARDED_BY(m) CISTERN_TSA(guarded_by(m))
#define CISTERN_REQUIRES(...) CISTERN_TSA(requires_capability(__VA_ARGS__))
#define CISTERN_EXCLUDES(...) CISTERN_TSA(locks_excluded(__VA_ARGS__))
#define CISTERN_NO_TSA CISTERN_TSA(no_thread_safety_analysis)

namespace cistern {

/// One word. Taking a free mutex is one inlined atomic instruction, which is most of a hit's cost
/// of thread safety. A thread that finds it held spins for a moment, then sleeps. After U. Drepper,
/// "Futexes Are Tricky", 2011 (mutex 2). Whoever comes by may take a lock that is given up before
/// the sleeper wakes, because that is fast; but a thread that has waited for long is handed the
/// lock, as Go's sync.Mutex does. Debug and audit builds know which thread holds it, and
/// check its rank (lock_ranks.hpp) where a thread may wait for it.
class CISTERN_TSA(capability("mutex")) Mutex {
 public:
  explicit constexpr Mutex(LockRank rank) noexcept { setRank(rank); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() CISTERN_TSA(acquire_capability()) {
    checkOrder();
    if (!try_lock()) [[unlikely]]
      lockHeld();
  }
  void unlock() CISTERN_TSA(release_capability()) {
    noteGivenUp();
    std::uint32_t state = kHeld;
    if (!state_.compare_exchange_strong(state, kFree, std::memory_order_release,
                                        std::memory_order_relaxed)) [[unlikely]]
      giveUpWaitedFor(state);
  }
  bool try_lock() CISTERN_TSA(try_acquire_capability(true)) {
    std::uint32_t expected = kFree;
    const bool free = state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire,
                                                     std::memory_order_relaxed);
    if (free) noteTaken();
    return free;
  }
  /// For a fork, where one function takes it and another releases it (atFork in process.hpp). The C
  /// library takes all such locks, in an order of its own. So none of them is taken under another.
  void takeForFork() CISTERN_NO_TSA {
    if (!try_lock()) lockHeld();
  }
  void releaseAfterFork() CISTERN_NO_TSA { unlock(); }
  /// In a child of fork: free, whether a thread of the parent's has it, or the one that forked.
  void restoreInChild() CISTERN_NO_TSA {
    noteGivenUp();
    state_.store(kFree, std::memory_order_relaxed);
  }
  /// The calling thread holds it, in a place that the analysis cannot follow: a lambda, a loop over
  /// heaps. Release builds trust that; the others check it.
  void assertHeld() const CISTERN_TSA(assert_capability()) {
    CISTERN_ASSERT(holder_.load(std::memory_order_relaxed) == thisThread());
  }

 private:
  /// From kWaitedFor on threads may sleep, of which one has waited for long if it is kStarved.
  /// kHandedOn: free, for threads that have waited.
  enum : std::uint32_t { kFree, kHeld, kWaitedFor, kStarved, kHandedOn };
  void lockHeld() noexcept;
  void giveUpWaitedFor(std::uint32_t state) noexcept;
#if defined(CISTERN_DEBUG) || defined(CISTERN_AUDIT_BUILD)
  static const void* thisThread() noexcept;
  constexpr void setRank(LockRank rank) { rank_ = rank; }
  void checkOrder() const { lock_order::check(rank_); }
  void noteTaken() {
    holder_.store(thisThread(), std::memory_order_relaxed);
    lock_order::taken(rank_);
  }
  /// A child of fork may give up what it has restored.
  void noteGivenUp() {
    const void* const holder = holder_.exchange(nullptr, std::memory_order_relaxed);
    if (holder == thisThread()) lock_order::givenUp(rank_);
  }
  std::atomic<const void*> holder_{nullptr};
  LockRank rank_{};
#else
  constexpr void setRank(LockRank) {}
  void checkOrder() const {}
  void noteTaken() {}
  void noteGivenUp() {}
#endif

  std::atomic<std::uint32_t> state_{kFree};
};

/// Holds a Mutex for a scope.
class CISTERN_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& m) CISTERN_TSA(acquire_capability(m)) : mutex_(m) { mutex_.lock(); }
  ~MutexLock() CISTERN_TSA(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Releases at the end of a scope a Mutex that the scope has by try_lock.
class CISTERN_TSA(scoped_lockable) MutexUnlock {
 public:
  explicit MutexUnlock(Mutex& m) CISTERN_TSA(requires_capability(m)) : mutex_(m) {}
  ~MutexUnlock() CISTERN_TSA(release_capability()) { mutex_.unlock(); }
  MutexUnlock(const MutexUnlock&) = delete;
  MutexUnlock& operator=(const MutexUnlock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace cistern
