// The steps that placing, freeing (layout.cpp) and making holes (holes.cpp) have in common. All of
// them are on the path of nearly every request that a cache does not serve: hence inline.
#pragma once

#include <algorithm>

#include "allocator/base/check.hpp"
#include "allocator/layout/layout.hpp"

namespace cistern {

/// The bits of a block's address that its record has: Block::granule.
inline constexpr std::uint64_t kGranuleMask = (std::uint64_t{1} << 48) - 1;

constexpr std::uint64_t bytesOf(std::uint32_t granules) {
  return std::uint64_t{granules} << kGranuleShift;
}

// Makes a block that is in no index free, and puts it there.
inline void Layout::enlist(Block& block) noexcept {
  block.setState(BlockState::kFree);
  index_.insert(block);
  if (block.spansSegment()) [[unlikely]] {
    whole_.blocks += 1;
    whole_.bytes += block.bytes();
  }
}

// Takes a free block out of the index.
inline void Layout::unlist(Block& block) noexcept {
  index_.remove(block);
  if (block.spansSegment()) [[unlikely]] {
    whole_.blocks -= 1;
    whole_.bytes -= block.bytes();
  }
}

inline void Layout::noteRise(const SplitFree& before) noexcept {
  const SplitFree now = splitFree();
  rises_.blocks += now.blocks > before.blocks ? now.blocks - before.blocks : 0;
  rises_.bytes += now.bytes > before.bytes ? now.bytes - before.bytes : 0;
}

// Makes `upper` part of its lower neighbour. Both are in no index, and `upper` in the map unless it
// is a hole. As the lower record stays, a segment's first block never changes.
inline void Layout::join(Block& lower, Block& upper) noexcept {
  if (!upper.isHole()) map_.erase(upper);
  lower.granules += upper.granules;
  lower.epoch = std::max(lower.epoch, upper.epoch);
  lower.next = upper.next;
  if (lower.next) lower.next->prev = &lower;
  pool_.give(&upper);
}

// Makes a block that is in no list, but in the map, free, one with the free blocks beside it.
inline Block* Layout::settleFree(Block& block) noexcept {
  block.setState(BlockState::kFree);
  Block* whole = &block;
  if (block.next && block.next->isFree()) {
    index_.remove(*block.next);  // it has a neighbour, and spans no segment
    join(block, *block.next);
  }
  if (block.prev && block.prev->isFree()) {
    whole = block.prev;
    index_.remove(*whole);
    join(*whole, block);
  }
  enlist(*whole);
  return whole;
}

}  // namespace cistern
