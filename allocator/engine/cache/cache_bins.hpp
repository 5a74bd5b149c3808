// The sizes that a cache keeps, and the stack that it keeps of one size.
//
//   up to 64 KiB     a stack for each size
//   up to 1 MiB      sixteen stacks, each of one size: the one that came last
//   up to 32 MiB     one block: the one that was freed last
//
// Only the last large block is kept. A block that comes back to where it just was, and not to where
// it fits best, costs pages that would have become free.
#pragma once

#include <cstddef>
#include <cstdint>

#include "allocator/base/check.hpp"
#include "allocator/engine/ground/ownership.hpp"
#include "allocator/layout/block.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

/// In granules.
struct CacheSizes {
  static constexpr std::uint32_t kDirect = 128;  ///< sizes up to here have a stack each
  static constexpr std::uint32_t kSmall = 2048;  ///< 1 MiB: larger requests are large
  static constexpr std::uint32_t kMost = 1 << 16;
  static constexpr std::uint64_t kDirectBytes = std::uint64_t{kDirect} << kGranuleShift;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{kMost} << kGranuleShift;

  static bool areShared(std::uint32_t granules) noexcept {
    return granules > kDirect && granules <= kSmall;
  }
  static SizeKind kindOf(std::uint32_t granules) noexcept {
    return granules <= kSmall ? SizeKind::kSmall : SizeKind::kLarge;
  }
};

/// Cached blocks of one size, linked by use.uses; use.stream is WhoFreed::word.
struct CacheBin {
  Block* top = nullptr;

  /// Pre: the block is at Where::kCached.
  void push(Block& block, Stream who) noexcept {
    block.use.stream = who;
    block.use.uses = top;
    top = &block;
  }
  /// Pre: it is not empty.
  Block& pop() noexcept {
    Block& block = *top;
    top = ownership::linkedTo(block);
    return block;
  }
  /// pop(), for the program, which has asked for `bytes`.
  Block& handOut(std::uint64_t bytes) noexcept {
    Block& block = pop();
    block.use.asked = std::uint32_t(bytes);
    block.use.holder -= std::uint32_t(ownership::Where::kCached);
    return block;
  }
  /// Checks each block; returns the bytes of all. `held`: as CachedBlocks::holder().
  std::int64_t audit(std::uint32_t held, std::uint32_t granules) const {
    std::int64_t bytes = 0;
    for (const Block* b = top; b; b = ownership::linkedTo(*b)) {
      CISTERN_CHECK(b->state() == BlockState::kAllocated && b->granules == granules);
      CISTERN_CHECK(ownership::load(*b) == ownership::moved(held, ownership::Where::kCached));
      bytes += std::int64_t(b->bytes());
    }
    return bytes;
  }
};

}  // namespace cistern
