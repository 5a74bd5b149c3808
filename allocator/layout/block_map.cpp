#include "allocator/layout/block_map.hpp"

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
  for (std::size_t i = home(hash); slots_[i] != 0; i = after(i)) {
    if (slots_[i] >> kPointerBits == tag && blockOf(slots_[i])->address() == address) {
      return blockOf(slots_[i]);
    }
  }
  return nullptr;
}

template <unsigned TagBits>
void BasicBlockMap<TagBits>::place(Slot slot) noexcept {
  std::size_t i = homeOf(slot);
  while (slots_[i] != 0) i = after(i);
  slots_[i] = slot;
}

template <unsigned TagBits>
void BasicBlockMap<TagBits>::insert(const Block& block) noexcept {
  CISTERN_ASSERT((used_ + 1) * 4 <= slots_.size() * 3);
  place(slotFor(block));
  ++used_;
}

// Closes the gap by moving back every later slot of the run whose home does not lie past the gap.
template <unsigned TagBits>
void BasicBlockMap<TagBits>::erase(const Block& block) noexcept {
  const Slot wanted = slotFor(block);
  std::size_t gap = homeOf(wanted);
  while (slots_[gap] != wanted) gap = after(gap);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = after(gap); slots_[i] != 0; i = after(i)) {
    const std::size_t from_home = (i - homeOf(slots_[i])) & mask;
    const std::size_t from_gap = (i - gap) & mask;
    if (from_home < from_gap) continue;
    slots_[gap] = slots_[i];
    gap = i;
  }
  slots_[gap] = 0;
  --used_;
}

template <unsigned TagBits>
void BasicBlockMap<TagBits>::grow() {
  const unsigned bits = slots_.empty() ? 4 : bits_ + 1;
  decltype(slots_) bigger(std::size_t{1} << bits, 0);
  slots_.swap(bigger);
  bits_ = bits;
  for (Slot slot : bigger) {
    if (slot != 0) place(slot);
  }
}

template <unsigned TagBits>
void BasicBlockMap<TagBits>::audit() const {
  CISTERN_CHECK(used_ * 4 <= slots_.size() * 3);
  std::size_t used = 0;
  for (Slot slot : slots_) {
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
