// From an address to the block that starts there, free or not. An open-addressing hash table with
// linear probing and no tombstones. It is at most half full, so that runs are short: an erase has
// to walk a run. Free blocks are in it too, so that handing out a whole block and taking it back
// leave the table alone.
//
// A slot is one word: the block's pointer and 22 bits of the address's hash. The pointer fits 42
// bits: records are 64-byte aligned, and user space is 48 bits wide. The hash bits detect nearly
// every mismatch. Up to four million slots they also give a slot's home, so that erasing and
// growing never touch the blocks. No lock: the owner (a heap) serialises, except for peek, which
// any thread may call at any time. Slots are written as single words, and an outgrown table stays
// readable. So a reader can only go wrong in one way: it may miss a block that is being moved.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "allocator/layout/block.hpp"
#include "allocator/layout/host_memory.hpp"

namespace cistern {

/// TagBits: the hash bits in a slot. Fewer only in tests of tables larger than the tag.
template <unsigned TagBits>
class BasicBlockMap {
 public:
  BasicBlockMap() = default;
  ~BasicBlockMap();
  BasicBlockMap(const BasicBlockMap&) = delete;
  BasicBlockMap& operator=(const BasicBlockMap&) = delete;

  /// The block that starts at `address`, or null.
  Block* find(Address address) const noexcept;
  /// The allocated block that starts at `address`, or null. For a caller that owns the block, so
  /// that its record does not change. May, seldom, miss an existing block when the table changes
  /// meanwhile. May be called while the owner changes the map.
  Block* peek(Address address) const noexcept;
  /// Starts loading the slots where a block at `address` would be.
  void prefetch(Address address) const noexcept {
    if (used_ != 0) __builtin_prefetch(&slots_[home(hashOf(address))]);
  }
  /// Pre: no block with that address is in the map, and prepare was called.
  void insert(const Block& block) noexcept;
  /// Makes sure that `count` inserts cannot fail. Throws std::bad_alloc, changing nothing but the
  /// table's size.
  void prepare(std::size_t count = 1) {
    while (used_ + count > most_) grow();
  }
  /// Keeps room for one insert, until endReserve. Pre: prepared for.
  void reserve() noexcept {
    ++reserved_;
    --most_;
  }
  void endReserve() noexcept {
    --reserved_;
    ++most_;
  }
  /// Pre: the block is in the map.
  void erase(const Block& block) noexcept;

  std::size_t size() const { return used_; }
  /// The bytes of the table in use, and of the kept parts of outgrown ones.
  std::size_t hostBytes() const { return (capacity() + outgrown_slots_) * sizeof(Slot); }
  /// Walks everything; aborts on a broken invariant.
  void audit() const;

 private:
  using Slot = std::uint64_t;  // 0: empty
  static constexpr unsigned kPointerBits = 42;
  static_assert(TagBits > 0 && TagBits <= 64 - kPointerBits);

  static std::uint64_t hashOf(Address a) { return (a >> kGranuleShift) * 0x9E3779B97F4A7C15u; }
  static std::uint64_t tagOf(std::uint64_t hash) { return hash >> (64 - TagBits); }
  static Block* blockOf(Slot s) {
    return reinterpret_cast<Block*>((s & ((std::uint64_t{1} << kPointerBits) - 1)) << 6);
  }
  static Slot slotFor(const Block& block);
  std::size_t home(std::uint64_t hash) const { return std::size_t(hash >> (64 - bits_)); }
  std::size_t homeOf(Slot slot) const;
  std::size_t capacity() const { return slots_ ? std::size_t{1} << bits_ : 0; }
  static void set(Slot& at, Slot slot) noexcept {
    std::atomic_ref(at).store(slot, std::memory_order_release);
  }
  void place(Slot slot) noexcept;
  template <class HomeOf>
  void eraseSlot(Slot wanted, HomeOf homeOf) noexcept;
  void grow();
  void outgrow(Slot* slots, unsigned bits) noexcept;

  // A reader gets both from one word: the table's address is a multiple of 64 below 2^48.
  static std::uint64_t tableWord(const Slot* slots, unsigned bits) {
    return std::uint64_t{bits} << 48 | reinterpret_cast<std::uintptr_t>(slots);
  }

  Slot* slots_ = nullptr;  ///< 2^bits_ of them, or null
  unsigned bits_ = 0;
  std::size_t used_ = 0;
  std::size_t most_ = 0;  ///< half the capacity, less what is reserved
  std::size_t reserved_ = 0;
  std::atomic<std::uint64_t> table_{0};  ///< tableWord(slots_, bits_), for readers
  std::vector<std::pair<Slot*, std::size_t>> outgrown_;
  std::size_t outgrown_slots_ = 0;  ///< in memory
};

template <unsigned TagBits>
inline Block* BasicBlockMap<TagBits>::peek(Address address) const noexcept {
  constexpr unsigned kMostLooks = 64;  // a run is hardly ever that long
  const std::uint64_t table = table_.load(std::memory_order_acquire);
  const unsigned bits = unsigned(table >> 48);
  if (bits == 0) return nullptr;
  auto* const slots = reinterpret_cast<Slot*>(table & ((std::uint64_t{1} << 48) - 1));
  const std::uint64_t hash = hashOf(address), tag = tagOf(hash);
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  std::uint64_t i = hash >> (64 - bits);
  for (unsigned looks = 0; looks < kMostLooks; ++looks, i = (i + 1) & mask) {
    const Slot slot = std::atomic_ref(slots[i]).load(std::memory_order_acquire);
    if (slot == 0) return nullptr;
    if (slot >> kPointerBits != tag) continue;
    Block* const block = blockOf(slot);
    const std::uint64_t head = block->head();  // once: a wrong free may ask about a moving one
    if (Block::addressOf(head) == address && Block::stateOf(head) == BlockState::kAllocated)
      return block;
  }
  return nullptr;
}

extern template class BasicBlockMap<22>;
using BlockMap = BasicBlockMap<22>;

}  // namespace cistern
