// The blocks that a thread got last, by address, so that their frees need no look-up. One for all
// streams of the thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "allocator/layout/block.hpp"

namespace cistern {

/// Touched by its thread alone.
///
///   find(a) == b  =>  b's record stands for the block at a, which is allocated
///
/// The block's head, which holds its address and state, changes when the record comes to stand for
/// another block.
class RecentBlocks {
 public:
  // An empty entry has an address that belongs to another entry.
  constexpr RecentBlocks() noexcept { entries_[0].address = kGranule; }
  Block* find(Address address) const noexcept {
    const Entry& last = entries_[indexOf(address)];
    if (last.address != address) return nullptr;
    return last.block->head() == last.head ? last.block : nullptr;
  }
  void remember(Address address, Block& block) noexcept {
    Entry& last = entries_[indexOf(address)];
    last.address = address;
    last.head = block.head();
    last.block = &block;
  }

 private:
  struct Entry {
    Address address = 0;
    std::uint64_t head = 0;
    Block* block = nullptr;
    std::uint64_t unused = 0;  ///< so that an entry is found by a shift
  };
  static constexpr std::size_t kEntries = 64;
  static std::size_t indexOf(Address address) { return (address >> kGranuleShift) % kEntries; }

  std::array<Entry, kEntries> entries_{};
};

}  // namespace cistern
