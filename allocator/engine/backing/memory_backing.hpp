// The source of a heap's memory, which also takes it back: `SegmentBacking` or `PageBacking`. Code
// that grows a heap knows which of the two it is; all other code asks here. `Limit` says how much
// memory there may be.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "allocator/base/mutex.hpp"

namespace cistern {

struct Block;
class Heap;
struct HeapSegment;
struct Request;
namespace pages {
struct Mapping;
}

/// How much may be taken from the device, and how much is. Lock-free.
///
/// reserved() <= limit(), but for what was there before the limit was lowered.
class Limit {
 public:
  std::uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  void set(std::uint64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }

  /// Bytes held, and being asked for.
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
  /// They were not to be had, or are back at the device.
  void giveBack(std::uint64_t bytes) { reserved_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> limit_{0};
  std::atomic<std::uint64_t> reserved_{0};
};

/// The number that names a holder of pins: a capture, a part of one, or an export. Unique among
/// those that overlap; never 0, nor Request::kLent.
inline std::uint32_t nextHolder() {
  static std::atomic<std::uint32_t> next{1};
  const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number != 0 && number != UINT32_MAX ? number : nextHolder();
}

/// Memory that must stay where it is because a graph that may be replayed, or another process,
/// knows its addresses. Each segment, or mapping of a page, is in it once.
struct Pins {
  std::vector<pages::Mapping*> mappings;
  std::vector<HeapSegment*> segments;
  std::vector<std::shared_ptr<void>> graphs;  ///< that became part of it: what they hold
};

/// Thread-safe. Nothing here may be called with a heap's lock held, unless it says so. Heaps that
/// are given may be of either backing; each backing looks at its own.
class MemoryBacking {
 public:
  MemoryBacking(const MemoryBacking&) = delete;
  MemoryBacking& operator=(const MemoryBacking&) = delete;
  /// Whether it is the one in pages.
  bool inPages() const { return in_pages_; }

  /// Gives what lies wholly free in the heaps back to the device until `bytes` are back. Returns
  /// how many are.
  virtual std::uint64_t release(const std::vector<Heap*>& heaps, std::uint64_t bytes) = 0;
  /// The block's memory stays where it is until unpin: holder `number` knows its addresses. Memory
  /// that the holder has not pinned before comes into `pins`. Pre: the block is allocated. Throws
  /// std::bad_alloc; then what came into `pins` counts, and nothing else.
  virtual void pin(const Block& block, std::uint32_t number, Pins& pins) = 0;
  /// Whether a graph reaches any of the block's memory. Pre: holdStill() and the heap's lock are
  /// held.
  virtual bool pinned(const Block& block) const = 0;

  /// The lock that comes before heaps', held: nothing moves meanwhile. Segments have none.
  virtual std::unique_lock<Mutex> holdStill() const = 0;
  /// The least that a request takes from the device when nothing is free for it, in bytes.
  virtual std::uint64_t leastGrowth(const Request& request) const = 0;
  /// The device's last message, if it refused; else nothing. An OutOfMemory tells it.
  std::string lastError() const {
    const MutexLock lock(mutex_);
    return last_error_;
  }
  /// Whether the device's last answer was a refusal.
  bool wasRefused() const { return refused_.load(std::memory_order_relaxed); }
  /// The device has answered a request for memory, or of it.
  template <class Answer>
  void noteAnswer(const Answer& answer) noexcept {
    if (answer.ok() && !refused_.load(std::memory_order_relaxed)) return;
    const MutexLock lock(mutex_);
    refused_.store(!answer.ok(), std::memory_order_relaxed);
    try {
      last_error_ = answer.ok() ? std::string() : answer.error().message();
    } catch (const std::bad_alloc&) {
      last_error_.clear();
    }
  }

 protected:
  explicit MemoryBacking(bool in_pages) : in_pages_(in_pages) {}
  ~MemoryBacking() = default;

 private:
  const bool in_pages_;
  std::atomic<bool> refused_{false};
  mutable Mutex mutex_;  ///< a leaf
  std::string last_error_ CISTERN_GUARDED_BY(mutex_);
};

/// For calls that nobody can make again later: if the device refuses, the call is made once more.
template <class Call>
bool insist(Call call) {
  return call().ok() || call().ok();
}

}  // namespace cistern
