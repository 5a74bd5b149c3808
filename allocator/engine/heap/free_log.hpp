// A heap's memory of its last frees, so that a second free of the same pointer can be told where
// the first one was. Guarded by the heap's lock.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "allocator/layout/block.hpp"

namespace cistern {

class FreeLog {
 public:
  struct Entry {
    Address address = 0;
    const void* caller = nullptr;  ///< the code that called free
    std::uint32_t thread = 0;      ///< threadNumber() of the thread that did
    std::uint32_t bytes_in_granules = 0;
  };

  explicit FreeLog(std::size_t capacity) : capacity_(capacity) {}

  void note(Address address, std::uint32_t granules, const void* caller, std::uint32_t thread) {
    if (next_ == entries_.size()) [[unlikely]]
      growOrWrap();
    if (!entries_.empty()) entries_[next_++] = {address, caller, thread, granules};
  }
  /// The youngest remembered free of a block that covered `address`, or null.
  const Entry* find(Address address) const {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Entry& e = entries_[(next_ + entries_.size() - 1 - i) % entries_.size()];
      if (e.address == 0) break;
      if (address - e.address < (std::uint64_t{e.bytes_in_granules} << kGranuleShift)) return &e;
    }
    return nullptr;
  }
  std::size_t hostBytes() const { return entries_.size() * sizeof(Entry); }

 private:
  static constexpr std::size_t kFewest = 4;  ///< many heaps never free more
  /// Pre: next_ == entries_.size(), so that all there are stand in the order of their age. Where
  /// the host is short of memory, no more is remembered for now.
  void growOrWrap() noexcept {
    if (entries_.size() < capacity_) {
      try {
        entries_.resize(std::min(capacity_, std::max(kFewest, 2 * entries_.size())));
        return;
      } catch (const std::bad_alloc&) {
      }
    }
    next_ = 0;
  }

  std::vector<Entry> entries_;  ///< a ring, made larger until it has `capacity_`
  std::size_t capacity_;
  std::size_t next_ = 0;  ///< behind the youngest; at most entries_.size()
};

/// A small number that stays with the calling thread.
inline std::uint32_t threadNumber() noexcept {
  static std::atomic<std::uint32_t> next{1};
  thread_local const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace cistern
