// Mappings and pages that go. Stale mappings whose last use is complete are unmapped. Pages that
// lie wholly free, and that no queued work uses, are given back to the device. Both happen at once,
// or later. Pages of pools that sleep go, and come back at wake. All of it is done under the
// backing's lock.
#pragma once

#include <cstdint>

#include "allocator/base/background.hpp"
#include "allocator/base/steps.hpp"
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

// ---- Pages that go to sleep, and come back (sleeping.cpp): the part that knows mappings and the
// device. allocator/sleep says which, and keeps their contents.

/// Whether work may still go through a mapping of the page that nobody holds and that blocks do not
/// lie in. Asks the streams.
bool hasUsedMappings(State& state, const PhysicalPage& page);

/// Calls visit(Mapping&) for each page in the heap, where it lies.
template <class Visit>
void forEachCurrent(Heap& heap, Visit visit) CISTERN_REQUIRES(heap.mutex()) {
  std::uint64_t steps = 0;
  forEachSegment(heap, [&](HeapSegment& segment) {
    const auto& range = static_cast<const PageRange&>(segment);
    forEachMapping(range, range.base, range.end(), [&](Mapping& mapping) {
      ++steps;
      if (mapping.isCurrent()) visit(mapping);
    });
  });
  noteSteps(steps);
}

/// Calls visit(const Block&) for each block that lies in the mapping, in any state.
template <class Visit>
void forEachBlockIn(const Mapping& at, AscendingSearch& search, Visit visit) {
  const Block* block = search.covering(*at.range, at.place());
  for (; block != nullptr && block->address() < at.placeEnd(); block = block->next) visit(*block);
}

/// Unmaps the page, and gives it back to the device. False, and the page is as before but for
/// mappings that nobody holds, if the device does not unmap it. Otherwise it is asleep, whether the
/// device takes it back or not. Pre: no queued work uses the page; the heap sleeps.
bool putAway(State& state, PhysicalPage& page) noexcept;

/// How many units a page may have that comes back for several: a 32nd of `units`, the units that
/// come back in all, but at least 32 MiB and at most 256 MiB.
std::uint32_t mostJoined(std::uint64_t units);
/// Whether the two can come back as one page of at most `most` units (MappingTable::join): nobody
/// holds them, the device has neither, and the second lies behind the first.
bool canJoin(const PhysicalPage& first, const PhysicalPage& second, std::uint32_t most);
/// Makes the page, if the device does not have it, and maps it wherever it lies. Pre: asleep. After
/// a failure it has what it has: giveUp() takes back what is left. A page that the limit does not
/// admit is ErrorKind::kOutOfMemory. Throws std::bad_alloc for the text of a failure.
Status makeAndMap(State& state, PhysicalPage& page);
/// Gives the page back to the device, as far as the device takes it. Pre: asleep, and no queued
/// work uses it.
void giveUp(State& state, PhysicalPage& page) noexcept;

/// Prepares for wake() with the pages that the heap has now. Throws std::bad_alloc.
void prepareWake(Heap& heap) CISTERN_REQUIRES(heap.mutex());
/// The heap wakes, if it sleeps: holes of it that have a page behind them become free memory. Pre:
/// prepareWake().
void wake(Heap& heap) noexcept CISTERN_REQUIRES(heap.mutex());

}  // namespace cistern::pages
