// Pages leave the free memory of a heap, and come back to it. The layout sees a hole meanwhile.
// Under the backing's lock and the heap's.
#pragma once

#include <vector>

#include "allocator/engine/pages/pages_state.hpp"

namespace cistern::pages {

/// The hole that covers a place of a range. Pre: there is one.
Block& holeAt(Heap& heap, const PageRange& range, Address place) CISTERN_REQUIRES(heap.mutex());

/// Prepares for `pages` pages to leave memory of either kind, and to come, without host memory.
/// Throws std::bad_alloc, changing nothing.
void prepareMoves(Heap& heap, std::size_t pages) CISTERN_REQUIRES(heap.mutex());

/// The pages leave free memory. Sorts the mappings. Pre: a scan under the same hold of the heap's
/// lock has found them. Throws std::bad_alloc, changing nothing.
void takeOut(Heap& heap, std::vector<Mapping*>& mappings) CISTERN_REQUIRES(heap.mutex());
/// takeOut(), and what each page needs to come back is kept until Layout::endReserve.
void reserve(Heap& heap, std::vector<Mapping*>& mappings) CISTERN_REQUIRES(heap.mutex());

/// The page becomes free memory where the mapping is, last used in that epoch of the heap's.
/// Returns the block that it is part of. Pre: prepared for.
Block* putIn(Heap& heap, const Mapping& mapping, std::uint64_t last_use) noexcept
    CISTERN_REQUIRES(heap.mutex());
/// The page becomes free memory where a stale mapping of the heap's is, last used in that epoch.
/// The mapping is its current one from now on. Returns the block that it is part of. Pre: prepared
/// for. The page has no current mapping, and the lock of the heap that counts it is held, too.
Block* arrive(State& state, Heap& heap, Mapping& at, std::uint64_t last_use) noexcept
    CISTERN_REQUIRES(heap.mutex());
/// Pages that lie wholly free in the heap, that it has parked, or that lie free in the heap beside
/// it, come to where these stale mappings of theirs are. No device call. Returns the free block
/// around the last. Pre: scans under the same hold of the heaps' locks have found those that lie
/// free. Throws std::bad_alloc, changing nothing.
Block* revive(State& state, Heap& heap, const std::vector<Mapping*>& at)
    CISTERN_REQUIRES(heap.mutex());
/// Pages that lie wholly free in any heaps of a pool come to where these stale mappings of theirs
/// are. No device call. Memory that comes to another heap counts as used until now. Sorts the
/// mappings. Pre: prepared for in all of these heaps, whose locks are held. Also pre: if a page
/// changes heaps, the new heap's stream is ordered after the old heap's.
void comeBack(State& state, std::vector<Mapping*>& at) noexcept;

// ---- The work at each low water (heap/low_water.hpp): pages go home. A program repeats itself
// in rounds, each from one low water to the next. It finds pages where they were, and its windows'
// mappings with them.
//
// Late pages, those that a heap made after its first low water, are parked instead. The program has
// begun its round without them. If they lay free when the next round begins, they would be small
// blocks at odd places. Best fit would place requests there that the last round placed elsewhere.
// Later windows would then differ, and need mapping. So the layout sees a hole at the home of a
// late page. The miss that took the page into use in the last round finds its mapping there, and
// takes the page back.
//
// Nothing is lost by it. Late pages are all unparked first in three cases: a miss would have to
// map, the heap gives pages back, or another heap wants them. Pages that the miss has no use for
// are parked again. The pages that it used stay mapped in its window. So in the next round that
// miss needs no call, and unparks nothing. And late pages are few. If much was made since the last
// low water, it belongs to what rounds begin with from now on.
//
//   page.parked  =>  no current mapping, no holds, late, counted by the heap that made it, and
//                   mapped at home, through which it is unparked

/// Pages that lie wholly free in the heap go home, as far as they are mapped there, or are parked.
/// Throws std::bad_alloc; then pages stay where they are until the next low water.
void sendHome(State& state, Heap& heap) CISTERN_REQUIRES(heap.mutex());
/// Parks late pages that lie wholly free at home: all, or those that were unparked for that miss.
/// If the host is short of memory, they stay.
void park(State& state, Heap& heap, std::uint64_t unparked_for = 0) noexcept
    CISTERN_REQUIRES(heap.mutex());
/// Makes the pages that the heap has parked its free memory again, for that miss or for none.
/// Throws std::bad_alloc, changing nothing.
void unpark(State& state, Heap& heap, std::uint64_t miss = 0) CISTERN_REQUIRES(heap.mutex());

}  // namespace cistern::pages
