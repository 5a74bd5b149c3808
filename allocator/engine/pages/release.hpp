// Mappings and pages that go. Stale mappings whose last use is complete are unmapped. Pages that
// lie wholly free, and that no queued work uses, are given back to the device. Both happen at once,
// or later. All of it is done under the backing's lock.
#pragma once

#include <cstdint>

#include "allocator/base/background.hpp"
#include "allocator/engine/pages/pages_state.hpp"

namespace cistern::pages {

/// Whether no work uses the mapping any more. `ask`: asks its stream, if need be.
bool lastUseIsComplete(State& state, const Mapping& mapping, bool ask);

/// Which free pages to give back.
struct ReleaseRule {
  std::uint64_t latest_epoch = UINT64_MAX;  ///< of the heap's: not used later
  std::uint64_t bytes = UINT64_MAX;         ///< how many to give back
  std::uint32_t most_units = UINT32_MAX;    ///< of a page
  bool only_of_device = false;              ///< only pages of the device
};

struct Released {
  std::uint64_t bytes = 0;
  /// Some lie free that could not go: queued work may still use them, or the device did not unmap
  /// them.
  bool more_later = false;
};

/// Gives free pages of the heap back, the longest unused first.
Released releaseFree(State& state, Heap& heap, const ReleaseRule& rule);
/// releaseFree(), without asking the heap's own stream first. For a page's stale mappings, it may
/// still ask how far their heaps' streams are.
Released releaseComplete(State& state, Heap& heap, const ReleaseRule& rule);
/// Hooks have heard that the mapping goes: the device unmaps it, and takes its page back if that is
/// nobody's any more. Nothing, if its pool has woken since.
void finishWithdrawal(State& state, Mapping& mapping) noexcept;
/// Gives spare pages back, until the device refuses one. Returns how many bytes are.
std::uint64_t releaseSpares(State& state) noexcept;

// ---- What can wait: stale mappings that have become too many, and the pages that emptyCache found
// still in use. The background thread clears up a piece at a time; where there is no thread for it,
// the next miss does.

/// More stale mappings than this are too many.
std::size_t mostStale(const State& state);
/// Whether there is anything to clear up.
bool isClearingDue(const State& state);
/// Clears up, if anything is due: all that can go now, or a little, as others may want the lock.
/// Says what comes next.
Background::Next clearUp(State& state, bool all) noexcept;
/// Memory that lies free in the heap now goes back to the device when its last use is complete.
void drainLater(State& state, Heap& heap);

}  // namespace cistern::pages
