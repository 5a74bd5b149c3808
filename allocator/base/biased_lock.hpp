// A lock that is biased towards one thread, its owner. The owner takes it all the time, and with
// two plain stores and a load, by no locked instruction. Other threads never take it. Now and then
// one revokes it: then the owner does not get it, until the other restores it.
//
// The owner's store must be ordered before its load: else both sides could miss each other. Those
// who revoke the lock pay for that order. They make every running thread of the process pass a
// barrier (Linux's membarrier, private expedited). Under the thread sanitizer, which does not know
// that call, the owner pays.
//
// Biased locking: K. Russell, D. Detlefs, "Eliminating Synchronization-Related Atomic Operations
// with Biased Locking and Bulk Rebiasing", 2006. The order is that of D. Dice, M. Huang, M. Yang,
// "Asymmetric Dekker Synchronization", 2001.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/base/sanitizers.hpp"

namespace cistern {

class BiasedLock {
 public:
  /// `revoked`: for ever, as nobody restores it.
  constexpr explicit BiasedLock(bool revoked = false) noexcept : revoked_(revoked ? 1 : 0) {}
  /// Whether biased locks work here. If not, do not use one.
  static bool available() noexcept;

  // ---- The owner -------------------------------------------------------------------------------

  /// True: what the lock guards is the owner's until unlock(). False: someone has revoked it.
  bool tryLock() noexcept {
    hold();
    if (revoked_.load(std::memory_order_seq_cst) == 0) [[likely]]
      return true;
    unlock();
    return false;
  }
  void unlock() noexcept { held_.store(0, std::memory_order_release); }

  // ---- Anyone. Those who revoke the same lock exclude each other by a lock of their own. --------

  /// The first of three steps, so that several locks can be revoked with one barrier:
  /// revoke() each, barrier() once, awaitOwner() each.
  void revoke() noexcept { revoked_.fetch_add(1, std::memory_order_seq_cst); }
  static void barrier() noexcept;
  /// From its return to restore() the owner does not hold the lock. An owner that holds it is never
  /// waiting for anything.
  void awaitOwner() const noexcept;
  void restore() noexcept { revoked_.fetch_sub(1, std::memory_order_release); }
  /// The three steps for all locks that `for_each` visits; it must visit the same ones twice.
  template <class ForEach>
  static void revokeAll(ForEach for_each) noexcept {
    bool any = false;
    for_each([&](BiasedLock& each) {
      each.revoke();
      any = true;
    });
    if (any) barrier();
    for_each([](BiasedLock& each) { each.awaitOwner(); });
  }

 private:
#if defined(CISTERN_THREAD_SANITIZER)
  static constexpr bool kOwnerPays = true;
#else
  static constexpr bool kOwnerPays = false;
#endif

  void hold() noexcept {
    if constexpr (kOwnerPays) {
      held_.exchange(1, std::memory_order_seq_cst);
      return;
    }
    held_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(
        std::memory_order_seq_cst);  // the compiler's order; barrier() the rest
  }

  std::atomic<std::uint32_t> held_{0};
  std::atomic<std::uint32_t> revoked_;
};

}  // namespace cistern
