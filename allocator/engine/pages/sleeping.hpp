// Pages go to sleep, and come back: the part that knows mappings and the device. engine/sleep says
// which, and keeps their contents. All of it is done under the backing's lock.
#pragma once

#include <list>
#include <vector>

#include "allocator/base/steps.hpp"
#include "allocator/engine/pages/pages_state.hpp"

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

/// A record for the page, for putAway. Throws std::bad_alloc.
std::list<SleepingPage> recordFor(const PhysicalPage& page);
/// Unmaps the page, and gives it back to the device. Null, and the page is as before but for
/// mappings that nobody holds, if the device does not unmap it. Otherwise `record` moves to the end
/// of HeapNotes::sleeping, whether the device takes the page back or not. Pre: no queued work uses
/// the page; the heap sleeps; `record` was made for it.
SleepingPage* putAway(State& state, PhysicalPage& page, std::list<SleepingPage>& record) noexcept;

/// How many units a page may have that comes back for several: a 32nd of `units`, the units that
/// come back in all, but at least 32 MiB and at most 256 MiB.
std::uint32_t mostJoined(std::uint64_t units);
/// Whether the two can come back as one page of at most `most` units: nobody holds them, neither is
/// there, and the second lies behind the first.
bool canJoin(const SleepingPage& first, const SleepingPage& second, std::uint32_t most);
/// Makes them one. Pre: canJoin.
void join(SleepingPage& first, SleepingPage& second) noexcept;
/// Makes the page, if it is not there, and maps it wherever it lies. Pre: the limit has admitted
/// it, if it is not there. After a failure it has what it has: take back what is left by undo().
/// Throws std::bad_alloc for the text of a failure.
Status makeAndMap(State& state, SleepingPage& page);
/// Gives the page back to the device, as far as the device takes it. Pre: no queued work uses it.
void giveUp(State& state, SleepingPage& page) noexcept;

/// The parts of what wakes: the records of a page that sleeps, and of its mappings.
struct Waking {
  SleepingPage* page = nullptr;
  PhysicalPage* made = nullptr;
  std::vector<Mapping*> mappings;  ///< one for each of page->at
};
/// Makes the records of a page that is there again, for bindAgain. Throws std::bad_alloc, changing
/// nothing.
Waking prepareWake(State& state, SleepingPage& page);
/// Undoes that.
void forgetWake(State& state, Waking& waking) noexcept;
/// The page is the heap's again, and its holders' ranges are bound. Blocks in use lie in it; the
/// holes in it are for fillHoles. Pre: the lock of the heap is held. The record of its sleep is for
/// the caller to drop.
void bindAgain(State& state, Waking& waking) noexcept;
/// Holes of the heap that have a page behind them become free memory. Pre: prepared for two moves
/// for each page; the heap is awake.
void fillHoles(Heap& heap) noexcept CISTERN_REQUIRES(heap.mutex());

}  // namespace cistern::pages
