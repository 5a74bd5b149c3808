#include "allocator/layout/block_map.hpp"

#include <algorithm>

#include <sys/mman.h>
#include <unistd.h>

#include "allocator/base/check.hpp"

namespace cistern {

template <unsigned TagBits>
auto BasicBlockMap<TagBits>::slotFor(const Block& block) -> Slot {
  const auto bits = reinterpret_cast<std::uintptr_t>(&block);
  CISTERN_ASSERT(bits % 64 == 0 && (std::uint64_t{bits} >> 48) == 0);
  return (tagOf(hashOf(block.address())) << kPointerBits) | (std::uint64_t{bits} >> 6);
}

template <unsigned TagBits>
std::size_t BasicBlockMap<TagBits>::homeOf(Slot slot) const {
  if (bits_ <= TagBits) return std::size_t((slot >> kPointerBits) >> (TagBits - bits_));
  return home(hashOf(blockOf(slot)->address()));
}

template <unsigned TagBits>
Block* BasicBlockMap<TagBits>::find(Address address) const noexcept {
  if (used_ == 0) return nullptr;
  const std::uint64_t hash = hashOf(address), tag = tagOf(hash);
  const std::size_t mask = capacity() - 1;
  for (std::size_t i = home(hash); slots_[i] != 0; i = (i + 1) & mask) {
    if (slots_[i] >> kPointerBits == tag && blockOf(slots_[i])->address() == address) {
      return blockOf(slots_[i]);
    }
  }
  return nullptr;
}

template <unsigned TagBits>
BasicBlockMap<TagBits>::~BasicBlockMap() {
  if (slots_) outgrown_.emplace_back(slots_, capacity());
  for (const auto& [slots, count] : outgrown_) HostAllocator<Slot>().deallocate(slots, count);
}

template <unsigned TagBits>
void BasicBlockMap<TagBits>::place(Slot slot) noexcept {
  Slot* const slots = slots_;  // here and below: a store to a slot could change the members, to a
  const std::size_t mask = capacity() - 1;  // compiler that does not know better
  std::size_t i = homeOf(slot);
  while (slots[i] != 0) i = (i + 1) & mask;
  set(slots[i], slot);
}

template <unsigned TagBits>
void BasicBlockMap<TagBits>::insert(const Block& block) noexcept {
  CISTERN_ASSERT(used_ < most_);
  place(slotFor(block));
  ++used_;
}

template <unsigned TagBits>
void BasicBlockMap<TagBits>::erase(const Block& block) noexcept {
  const Slot wanted = slotFor(block);
  if (bits_ <= TagBits) {
    const unsigned shift = kPointerBits + TagBits - bits_;
    eraseSlot(wanted, [shift](Slot slot) { return std::size_t(slot >> shift); });
  } else {
    eraseSlot(wanted, [this](Slot slot) { return homeOf(slot); });
  }
  --used_;
}

// Closes the gap by moving back every later slot of the run whose home does not lie past the gap.
template <unsigned TagBits>
template <class HomeOf>
inline void BasicBlockMap<TagBits>::eraseSlot(Slot wanted, HomeOf homeOf) noexcept {
  Slot* const slots = slots_;
  const std::size_t mask = capacity() - 1;
  std::size_t gap = homeOf(wanted);
  while (slots[gap] != wanted) gap = (gap + 1) & mask;
  std::size_t i = gap;
  while (true) {
    i = (i + 1) & mask;
    const Slot slot = slots[i];
    if (slot == 0) break;
    const std::size_t home = homeOf(slot);
    if (((i - home) & mask) < ((i - gap) & mask)) continue;
    set(slots[gap], slot);
    gap = i;
  }
  set(slots[gap], 0);
}

template <unsigned TagBits>
void BasicBlockMap<TagBits>::grow() {
  Slot* const before = slots_;
  const std::size_t old_size = capacity();
  const unsigned bits = before ? bits_ + 1 : 4;
  outgrown_.reserve(outgrown_.size() + 2);  // this one, and in the end the last
  Slot* const bigger = HostAllocator<Slot>().allocate(std::size_t{1} << bits);
  std::fill_n(bigger, std::size_t{1} << bits, 0);
  slots_ = bigger;
  bits_ = bits;
  most_ = (std::size_t{1} << (bits - 1)) - reserved_;
  for (std::size_t i = 0; i < old_size; ++i) {
    if (before[i] != 0) place(before[i]);
  }
  table_.store(tableWord(bigger, bits), std::memory_order_release);
  if (before) outgrow(before, bits - 1);
}

// Readers may still look into the outgrown table. It keeps its addresses, which then read as empty,
// and gives the host's pages in it back.
template <unsigned TagBits>
void BasicBlockMap<TagBits>::outgrow(Slot* slots, unsigned bits) noexcept {
  const std::size_t count = std::size_t{1} << bits;
  outgrown_.emplace_back(slots, count);
  outgrown_slots_ += count;
  static const auto kPage = std::uintptr_t(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(slots);
  const std::uintptr_t from = (begin + kPage - 1) / kPage * kPage;
  const std::uintptr_t to = (begin + count * sizeof(Slot)) / kPage * kPage;
  if (from >= to) return;
  if (::madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED) == 0)
    outgrown_slots_ -= (to - from) / sizeof(Slot);
}

template <unsigned TagBits>
void BasicBlockMap<TagBits>::audit() const {
  CISTERN_CHECK(used_ <= most_ && most_ + reserved_ == capacity() / 2);
  CISTERN_CHECK(slots_ == nullptr || table_.load() == tableWord(slots_, bits_));
  std::size_t used = 0;
  for (std::size_t i = 0; i < capacity(); ++i) {
    const Slot slot = slots_[i];
    if (slot == 0) continue;
    ++used;
    const Block* block = blockOf(slot);
    CISTERN_CHECK(block->state() != BlockState::kUnused);
    CISTERN_CHECK(find(block->address()) == block);
  }
  CISTERN_CHECK(used == used_);
}

template class BasicBlockMap<22>;
template class BasicBlockMap<6>;  // for tests

}  // namespace cistern
