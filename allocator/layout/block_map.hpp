// From an address to the block that starts there, free or not: an open-addressing hash table with
// linear probing and no tombstones, at most three quarters full. Free blocks are in it too, so that
// handing out a whole block and taking it back leave the table alone.
//
// A slot is one word: the block's pointer (records are 64-byte aligned and user space is 48 bits
// wide, so 42 bits say it) and 22 bits of the address's hash. The hash bits answer nearly every
// mismatch, and up to four million slots they also say where a slot's home is, so that erasing and
// growing never touch the blocks.
// No lock: the owner (a heap) serialises.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "allocator/layout/block.hpp"
#include "allocator/layout/host_memory.hpp"

namespace cistern {

/// TagBits: how much of the hash a slot holds. Fewer only in tests of tables larger than the tag.
template <unsigned TagBits>
class BasicBlockMap {
 public:
  /// The block that starts at `address`, or null.
  Block* find(Address address) const noexcept;
  /// Starts loading the slots where a block at `address` would be.
  void prefetch(Address address) const noexcept {
    if (used_ != 0) __builtin_prefetch(&slots_[home(hashOf(address))]);
  }
  /// Pre: no block with that address is in the map, and prepare was called.
  void insert(const Block& block) noexcept;
  /// Makes sure that `count` inserts cannot fail. Throws std::bad_alloc, changing nothing but the
  /// table's size.
  void prepare(std::size_t count = 1) {
    while ((used_ + count) * 4 > slots_.size() * 3) grow();
  }
  /// Pre: the block is in the map.
  void erase(const Block& block) noexcept;

  std::size_t size() const { return used_; }
  std::size_t hostBytes() const { return slots_.size() * sizeof(Slot); }
  /// Walks everything; aborts on a broken invariant.
  void audit() const;

 private:
  using Slot = std::uint64_t;  // 0: empty
  static constexpr unsigned kPointerBits = 42;
  static_assert(TagBits > 0 && TagBits <= 64 - kPointerBits);

  static std::uint64_t hashOf(Address a) { return (a >> kGrainShift) * 0x9E3779B97F4A7C15u; }
  static std::uint64_t tagOf(std::uint64_t hash) { return hash >> (64 - TagBits); }
  static Block* blockOf(Slot s) {
    return reinterpret_cast<Block*>((s & ((std::uint64_t{1} << kPointerBits) - 1)) << 6);
  }
  static Slot slotFor(const Block& block);
  std::size_t home(std::uint64_t hash) const { return std::size_t(hash >> (64 - bits_)); }
  std::size_t homeOf(Slot slot) const;
  std::size_t after(std::size_t i) const { return (i + 1) & (slots_.size() - 1); }
  void place(Slot slot) noexcept;
  void grow();

  std::vector<Slot, HostAllocator<Slot>> slots_;  ///< size is 0 or 2^bits_
  unsigned bits_ = 0;
  std::size_t used_ = 0;
};

extern template class BasicBlockMap<22>;
using BlockMap = BasicBlockMap<22>;

}  // namespace cistern
