// The stacks of one cache: its blocks, by exact size.
//
//   bins           blocks of                      each holds
//   0 .. 127       up to 64 KiB                   bin i those of i + 1 granules
//   128 .. 143     up to 1 MiB                    those of one size, the one that came last
//   144            up to 32 MiB                   one block: the one that was freed last
//
// Of a large block only the last is kept, because a block that comes back to where it just was, and
// not to where it fits best, costs pages that would have become free.
#pragma once

#include <array>
#include <cstdint>

#include "allocator/base/check.hpp"
#include "allocator/engine/cache/ownership.hpp"
#include "allocator/layout/block.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

/// A stack of cached blocks of one size, linked by use.uses; use.stream is WhoFreed::word. Its
/// bytes are counted by a CacheBudget.
struct CacheBin {
  Block* top = nullptr;
  std::uint32_t granules = 0;

  bool has(std::uint32_t wanted) const noexcept { return top != nullptr && granules == wanted; }
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
  /// pop(), for the program, which has asked for so many bytes.
  Block& handOut(std::uint64_t bytes) noexcept {
    Block& block = pop();
    block.use.asked = std::uint32_t(bytes);
    block.use.holder -= std::uint32_t(ownership::Where::kCached);
    return block;
  }
  /// Checks each block; returns the bytes of all. `held`: as CachedBlocks::holder().
  std::int64_t audit(std::uint32_t held) const {
    std::int64_t bytes = 0;
    for (const Block* b = top; b; b = ownership::linkedTo(*b)) {
      CISTERN_CHECK(b->state() == BlockState::kAllocated && b->granules == granules);
      CISTERN_CHECK(ownership::load(*b) == ownership::moved(held, ownership::Where::kCached));
      bytes += std::int64_t(b->bytes());
    }
    return bytes;
  }
};

class CacheBins {
 public:
  static constexpr std::uint32_t kDirectGranules = 128;  ///< sizes up to here have a bin each
  static constexpr std::uint64_t kDirectBytes = std::uint64_t{kDirectGranules} << kGranuleShift;
  static constexpr std::uint32_t kSmallGranules = 2048;  ///< 1 MiB: larger requests are large
  static constexpr std::uint32_t kMostGranules = 1 << 16;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{kMostGranules} << kGranuleShift;
  static constexpr std::size_t kShared = kDirectGranules;  ///< the first that sizes share
  static constexpr std::size_t kLast = kShared + 16;       ///< the one for a large block

  constexpr CacheBins() noexcept {
    for (std::uint32_t i = 0; i < kDirectGranules; ++i) bins_[i].granules = i + 1;
  }
  CacheBin& operator[](std::size_t i) noexcept { return bins_[i]; }
  const CacheBin& operator[](std::size_t i) const noexcept { return bins_[i]; }
  CacheBin& last() noexcept { return bins_[kLast]; }

  static std::size_t indexOf(std::uint32_t granules) noexcept {
    if (granules <= kDirectGranules) return granules - 1;
    if (granules > kSmallGranules) return kLast;
    return kShared + ((granules * 0x9E3779B1u) >> 28);  // one of sixteen
  }
  static bool isShared(std::uint32_t granules) noexcept {
    return granules > kDirectGranules && granules <= kSmallGranules;
  }
  static SizeKind kindOf(std::uint32_t granules) noexcept {
    return granules <= kSmallGranules ? SizeKind::kSmall : SizeKind::kLarge;
  }

 private:
  std::array<CacheBin, kLast + 1> bins_{};
};

}  // namespace cistern
