// How much memory an allocator may take from the device.
#pragma once

#include <atomic>
#include <cstdint>

namespace cistern {

/// How much may be taken from the device, and how much is. Lock-free.
///
/// reserved() <= limit(), but for what was there before the limit was lowered.
class Limit {
 public:
  std::uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  void set(std::uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }

  /// Bytes held, and bytes that the device is being asked for at this moment.
  std::uint64_t reserved() const { return reserved_.load(std::memory_order_relaxed); }
  /// The bytes that may still be taken.
  std::uint64_t left() const {
    const std::uint64_t most = limit(), held = reserved();
    return held < most ? most - held : 0;
  }
  /// The bytes held beyond the limit, because it was lowered.
  std::uint64_t over() const {
    const std::uint64_t most = limit(), held = reserved();
    return held > most ? held - most : 0;
  }
  /// Counts bytes as reserved if there is room for them.
  bool admit(std::uint64_t bytes) {
    std::uint64_t held = reserved();
    do {
      if (held + bytes > limit()) return false;
    } while (!reserved_.compare_exchange_weak(held, held + bytes, std::memory_order_relaxed));
    return true;
  }
  /// The bytes could not be had, or have gone back to the device.
  void noteReturned(std::uint64_t bytes) { reserved_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> limit_{0};
  std::atomic<std::uint64_t> reserved_{0};
};

}  // namespace cistern
