// What sleep has to know of a block in use, in the flags of its record: how its bytes are kept, and
// whether it was in use at its pool's last wake. It is forgotten as soon as the block is freed.
// Guarded by the heap's lock.
#pragma once

#include "allocator/layout/block.hpp"
#include "cistern/sleep.hpp"

namespace cistern::block_flags {

/// 0 if nobody has said how to keep the bytes, else 1 + the Contents.
inline constexpr unsigned kContents = 3;
inline constexpr unsigned kWoken = 4;

inline void setContents(Block& block, Contents contents) noexcept {
  block.setFlags((block.flags() & ~kContents) | (1 + unsigned(contents)));
}
/// What setContents said of the block; `otherwise` if it said nothing.
inline Contents contentsOf(const Block& block, Contents otherwise) noexcept {
  const unsigned said = block.flags() & kContents;
  return said == 0 ? otherwise : Contents(said - 1);
}
/// The block is in use while its pool wakes: wasWoken() tells it from later blocks at its address.
inline void noteWoken(Block& block) noexcept { block.setFlags(block.flags() | kWoken); }
inline bool wasWoken(const Block& block) noexcept { return (block.flags() & kWoken) != 0; }

}  // namespace cistern::block_flags
