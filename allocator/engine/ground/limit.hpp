// The kinds of memory, how much an allocator may take of each, and what the device answered last.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <string>

#include "allocator/base/mutex.hpp"
#include "cistern/types.hpp"

namespace cistern {

/// The kinds of memory that a heap has. Pages move to where they are needed, segments stay. A page
/// is of one of these kinds too, other than kSegments.
enum class MemoryKind : std::uint8_t {
  kSegments,   ///< of the device
  kPages,      ///< of the device
  kHostPages,  ///< of the host, in a pool that lies there
  kOverflow    ///< pages of the host, for a pool of device memory when the device is full
};

inline bool isOfDevice(MemoryKind kind) { return kind <= MemoryKind::kPages; }
inline Location locationOf(MemoryKind kind) {
  return isOfDevice(kind) ? Location::kDevice : Location::kHost;
}
/// Whether both are taken from the same: the device, the host, or what overflow may take of it.
/// Memory of the one that is given back makes room for the other.
inline bool shareRoom(MemoryKind a, MemoryKind b) {
  return a == b || (isOfDevice(a) && isOfDevice(b));
}
/// Whether a heap of pages of `kind` may have such a page. A heap of overflow takes the room that
/// the device still has, too.
inline bool mayHold(MemoryKind kind, MemoryKind page) {
  return kind == page || (kind == MemoryKind::kOverflow && page == MemoryKind::kPages);
}

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

/// Thread-safe; its lock is a leaf.
class LastAnswer {
 public:
  /// The device's last message, if it refused; else nothing. An OutOfMemoryReport contains
  /// this message.
  std::string error() const {
    const MutexLock lock(mutex_);
    return error_;
  }
  /// Whether the device's last answer was a refusal.
  bool wasRefused() const { return refused_.load(std::memory_order_relaxed); }
  /// Notes the device's answer to a call that takes memory from it, maps it, or gives some back.
  /// The answer is a Result or a Status.
  template <class Answer>
  void note(const Answer& answer) noexcept {
    if (answer.ok() && !refused_.load(std::memory_order_relaxed)) return;
    const MutexLock lock(mutex_);
    refused_.store(!answer.ok(), std::memory_order_relaxed);
    try {
      error_ = answer.ok() ? std::string() : answer.error().message();
    } catch (const std::bad_alloc&) {
      error_.clear();
    }
  }

 private:
  std::atomic<bool> refused_{false};
  mutable Mutex mutex_{LockRank::kLastError};
  std::string error_ CISTERN_GUARDED_BY(mutex_);
};

/// For calls that nobody can make again later: if the device refuses, the call is made once more.
template <class Call>
bool insist(Call call) {
  return call().ok() || call().ok();
}

}  // namespace cistern
