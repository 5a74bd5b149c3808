// A gate that one thread passes all the time and others close now and then. The owner passes with
// two plain stores and a load, and no locked instruction. The owner's store must be ordered before
// its load: else both sides could miss each other. The closers pay for that order. They make every
// running thread of the process pass a barrier (Linux's membarrier, private expedited). The idea is
// D. Dice, M. Huang, M. Yang, "Asymmetric Dekker Synchronization", 2001. Under the thread
// sanitizer, which does not know that call, the owner pays.
#pragma once

#include <atomic>
#include <cstdint>

#include "allocator/base/sanitizers.hpp"

namespace cistern {

class BiasedGate {
 public:
  /// `closed`: for ever, as nobody opens it.
  constexpr explicit BiasedGate(bool closed = false) noexcept : closed_(closed ? 1 : 0) {}
  /// Whether gates work here. If not, do not use one.
  static bool available() noexcept;

  // ---- The owner -------------------------------------------------------------------------------

  /// True: what the gate guards is the owner's until leave(). False: someone has closed it.
  bool enter() noexcept {
    comeIn();
    if (closed_.load(std::memory_order_seq_cst) == 0) [[likely]]
      return true;
    leave();
    return false;
  }
  void leave() noexcept { inside_.store(0, std::memory_order_release); }

  // ---- Anyone. Those who close the same gate exclude each other by a lock of their own. ---------

  /// The first of three steps, so that several gates can be closed with one barrier:
  /// close() each, barrier() once, awaitOwner() each.
  void close() noexcept { closed_.fetch_add(1, std::memory_order_seq_cst); }
  static void barrier() noexcept;
  /// From its return to open() the owner is outside. An owner inside is never waiting for anything.
  void awaitOwner() const noexcept;
  void open() noexcept { closed_.fetch_sub(1, std::memory_order_release); }
  /// The three steps for all gates that `for_each` visits; it must visit the same ones twice.
  template <class ForEach>
  static void closeAll(ForEach for_each) noexcept {
    bool any = false;
    for_each([&](BiasedGate& gate) {
      gate.close();
      any = true;
    });
    if (any) barrier();
    for_each([](BiasedGate& gate) { gate.awaitOwner(); });
  }

 private:
#if defined(CISTERN_THREAD_SANITIZER)
  static constexpr bool kOwnerPays = true;
#else
  static constexpr bool kOwnerPays = false;
#endif

  void comeIn() noexcept {
    if constexpr (kOwnerPays) {
      inside_.exchange(1, std::memory_order_seq_cst);
      return;
    }
    inside_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(
        std::memory_order_seq_cst);  // the compiler's order; barrier() the rest
  }

  std::atomic<std::uint32_t> inside_{0};
  std::atomic<std::uint32_t> closed_;
};

}  // namespace cistern
