// The last frees in a heap, each with the code and the thread that made it. Guarded by the heap's
// lock.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "allocator/layout/block.hpp"

namespace cistern {

/// Remembers who freed what, so that the report of a second free of the same pointer can say where
/// the first one was.
class FreeLog {
 public:
  struct Entry {
    Address address = 0;
    const void* caller = nullptr;  ///< the code that called free
    std::uint32_t thread = 0;      ///< threadNumber() of the thread that did
    std::uint32_t bytes_in_granules = 0;
  };

  /// The frees that are remembered: they fit into 1.5 KiB, which stay in the processor's cache.
  static constexpr std::size_t kMost = 64;

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
  /// Pre: next_ == entries_.size(), so that all there are stand in the order of their age. If the
  /// host is short of memory, no more is remembered for now.
  void growOrWrap() noexcept try {
    const std::size_t size = std::min(kMost, std::max(kFewest, 2 * entries_.size()));
    if (size == entries_.size()) next_ = 0;
    entries_.resize(size);
  } catch (const std::bad_alloc&) {
    next_ = 0;
  }

  std::vector<Entry> entries_;  ///< a ring, made larger until it has kMost
  std::size_t next_ = 0;        ///< behind the youngest; at most entries_.size()
};

}  // namespace cistern
