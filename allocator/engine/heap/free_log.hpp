// A heap's memory of its last frees, so that a second free of the same pointer can be told where
// the first one was. Guarded by the heap's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cistern/types.hpp"

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
  const Entry* find(Address address) const;
  std::size_t hostBytes() const { return entries_.size() * sizeof(Entry); }

 private:
  static constexpr std::size_t kFewest = 4;  ///< many heaps never free more
  /// Pre: next_ == entries_.size(), so that all there are stand in the order of their age.
  void growOrWrap() noexcept;

  std::vector<Entry> entries_;  ///< a ring, made larger until it has `capacity_`
  std::size_t capacity_;
  std::size_t next_ = 0;  ///< behind the youngest; at most entries_.size()
};

/// A small number that stays with the calling thread.
std::uint32_t threadNumber() noexcept;

}  // namespace cistern
