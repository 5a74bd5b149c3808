// Pages that go to sleep, and come back: the part of sleep that knows mappings and the device. The
// plan (sleep_plan.hpp) says which pages, and keeps their contents. Under the pages' lock.
#pragma once

#include <cstdint>

#include "allocator/base/steps.hpp"
#include "allocator/engine/pages/release.hpp"

namespace cistern::pages {

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
