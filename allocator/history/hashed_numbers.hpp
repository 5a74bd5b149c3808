// Finds the number of a thing that is kept elsewhere, by the thing's hash. The owner guards it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cistern {

/// Mixes a word into a hash.
constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

/// Numbers begin at 1. At most half of the slots are used.
class HashedNumbers {
 public:
  /// The number with that hash for which is(number) holds; 0 for none.
  template <class Is>
  std::uint32_t find(std::uint64_t hash, Is is) const {
    if (slots_.empty()) return 0;
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t at = std::size_t(hash) & mask; slots_[at].number != 0; at = (at + 1) & mask) {
      if (slots_[at].hash == hash && is(slots_[at].number)) return slots_[at].number;
    }
    return 0;
  }
  /// Throws std::bad_alloc, changing nothing.
  void add(std::uint64_t hash, std::uint32_t number) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    put({hash, number});
    ++used_;
  }

 private:
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t number = 0;  ///< 0: empty
  };

  void put(const Slot& slot) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = std::size_t(slot.hash) & mask;
    while (slots_[at].number != 0) at = (at + 1) & mask;
    slots_[at] = slot;
  }
  void grow() {
    std::vector<Slot> larger(slots_.empty() ? 64 : 2 * slots_.size());
    larger.swap(slots_);
    for (const Slot& slot : larger) {
      if (slot.number != 0) put(slot);
    }
  }

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
};

}  // namespace cistern
