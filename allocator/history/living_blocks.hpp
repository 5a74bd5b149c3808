// The blocks that live, by address: a hash table whose deletions move later entries back, so that
// it needs no marks of deleted ones. The owner guards it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "allocator/history/history_event.hpp"

namespace cistern {

/// At most half of the slots are used. A slot with address 0 is empty: no block lies there.
/// Between a block's own slot and the one where it stands there is no empty slot.
class LivingBlocks {
 public:
  std::size_t size() const { return size_; }
  /// The block at the address; null for none. Good until the next change.
  LivingBlock* find(Address address) noexcept {
    if (size_ == 0) return nullptr;
    LivingBlock& slot = slots_[slotOf(address)];
    return slot.address == address ? &slot : nullptr;
  }
  /// Adds a block, or replaces the one at its address. False, changing nothing, if the host is
  /// short of memory.
  bool put(const LivingBlock& block) noexcept {
    if (2 * (size_ + 1) > slots_.size() && !grow()) return false;
    LivingBlock& slot = slots_[slotOf(block.address)];
    if (slot.address == 0) ++size_;
    slot = block;
    return true;
  }
  /// Pre: find() has returned it, and nothing has changed since.
  void erase(LivingBlock& block) noexcept {
    const std::size_t mask = slots_.size() - 1;
    auto hole = std::size_t(&block - slots_.data());
    for (std::size_t at = (hole + 1) & mask; slots_[at].address != 0; at = (at + 1) & mask) {
      const std::size_t own = hashOf(slots_[at].address) & mask;
      if (((at - own) & mask) < ((at - hole) & mask)) continue;
      slots_[hole] = slots_[at];
      hole = at;
    }
    slots_[hole] = {};
    --size_;
  }
  template <class Visit>
  void forEach(Visit visit) const {
    for (const LivingBlock& slot : slots_) {
      if (slot.address != 0) visit(slot);
    }
  }
  void clear() noexcept {
    slots_ = {};
    size_ = 0;
  }

 private:
  static std::size_t hashOf(Address address) {
    return std::size_t((address * 0x9E3779B97F4A7C15u) >> 20);
  }
  /// The slot of the address, or the empty one where it belongs.
  std::size_t slotOf(Address address) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hashOf(address) & mask;
    while (slots_[at].address != 0 && slots_[at].address != address) at = (at + 1) & mask;
    return at;
  }
  bool grow() noexcept try {
    std::vector<LivingBlock> larger(slots_.empty() ? 1024 : 2 * slots_.size());
    larger.swap(slots_);
    for (const LivingBlock& block : larger) {
      if (block.address != 0) slots_[slotOf(block.address)] = block;
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  std::vector<LivingBlock> slots_;
  std::size_t size_ = 0;
};

}  // namespace cistern
