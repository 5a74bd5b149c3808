// Sections that threads are in, and a wait until those that are in one now have left it. Sleepable
// RCU has such waits, which it calls grace periods (P. McKenney, "Sleepable RCU", LWN, 2006).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace cistern {

/// One kind of section. At most 65,535 threads are in one at a time. Thread-safe.
///
/// Threads enter in one of two phases, which a wait may swap. So a phase empties, although others
/// enter all the time. One word has all, from its high bits down: how many ever entered, the phase
/// of those that enter now, the number inside of phase 1, and that of phase 0.
class Sections {
 public:
  /// The word as it was when a thread had entered.
  using Entry = std::uint64_t;

  Entry enter() noexcept {
    std::uint64_t before = word_.load(std::memory_order_relaxed);
    while (!word_.compare_exchange_weak(before, before + kEntered + oneInside(before))) {
    }
    return before + kEntered + oneInside(before);
  }
  void leave(Entry entry) noexcept { word_.fetch_sub(oneInside(entry)); }

  /// Whether the thread was the only one inside from `entry` until now. `nested` of its own have
  /// come and gone meanwhile.
  bool alone(Entry entry, std::uint64_t nested = 0) const noexcept {
    const std::uint64_t now = word_.load() & ~kPhase, then = (entry & ~kPhase) + nested * kEntered;
    return inside(now, 0) + inside(now, 1) == 1 && now == then;
  }

  /// Waits until each thread that is inside now has left, or until the time has come: then false.
  /// Pre: the calling thread is not inside.
  bool waitForOthers(std::chrono::steady_clock::time_point until) noexcept;

 private:
  static constexpr unsigned kBits = 16;
  static constexpr std::uint64_t kPhase = std::uint64_t{1} << 2 * kBits, kEntered = kPhase << 1;

  static unsigned phase(std::uint64_t word) noexcept { return (word & kPhase) != 0 ? 1 : 0; }
  static std::uint64_t oneInside(std::uint64_t word) noexcept {
    return std::uint64_t{1} << kBits * phase(word);
  }
  static std::uint64_t inside(std::uint64_t word, unsigned phase) noexcept {
    return word >> kBits * phase & ((std::uint64_t{1} << kBits) - 1);
  }

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace cistern
