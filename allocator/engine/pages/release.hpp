// Mappings and pages that go: stale mappings whose last use is complete are unmapped, and pages
// that lie wholly free, and that no queued work uses, are given back to the device. All of it under
// the backing's lock.
#pragma once

#include <cstdint>

#include "allocator/engine/pages/ground.hpp"

namespace cistern::pages {

/// Removes the oldest stale mappings whose last use is complete until at most `keep` are left, but
/// no more than `most`. Returns how many.
std::size_t unmapStale(Ground& ground, std::size_t keep, std::size_t most);

/// Unmaps the pages that have a mapping but no current one: the way back of each was barred when a
/// miss was undone.
void unmapOrphans(Ground& ground) noexcept;

/// Which free pages to give back.
struct ReleaseRule {
  std::uint32_t latest_epoch = UINT32_MAX;  ///< of the heap's: not used later
  std::uint64_t bytes = UINT64_MAX;         ///< until so many are back
  std::uint32_t most_units = UINT32_MAX;    ///< of a page
};

struct Released {
  std::uint64_t bytes = 0;
  bool more_later = false;  ///< some lie free, but queued work may still use them
};

/// Gives free pages of the heap back, the longest unused first.
Released releaseFree(Ground& ground, Heap& heap, const ReleaseRule& rule);

}  // namespace cistern::pages
