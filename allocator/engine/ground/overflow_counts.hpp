// What is counted of memory that lies on the host because the device was full.
#pragma once

#include <atomic>
#include <cstdint>

namespace cistern {

/// Thread-safe; each on its own.
struct OverflowCounts {
  std::atomic<std::uint64_t> handed_out{0};     ///< bytes of blocks, so far
  std::atomic<std::uint64_t> most_reserved{0};  ///< bytes of host pages, at one time
  std::atomic<std::uint64_t> would_do{0};       ///< bytes of all pages then, at most

  /// A block was handed out, while so much was reserved.
  void note(std::uint64_t block, std::uint64_t host, std::uint64_t device) noexcept {
    handed_out.fetch_add(block, std::memory_order_relaxed);
    raise(would_do, host + device);
  }
  /// A page was made; with it, so much is reserved.
  void noteReserved(std::uint64_t host) noexcept { raise(most_reserved, host); }

 private:
  static void raise(std::atomic<std::uint64_t>& most, std::uint64_t to) noexcept {
    std::uint64_t before = most.load(std::memory_order_relaxed);
    while (before < to && !most.compare_exchange_weak(before, to, std::memory_order_relaxed)) {
    }
  }
};

}  // namespace cistern
