// Pages leave the free memory of a heap, and come back to it. The layout sees a hole meanwhile.
// Under the backing's lock and the heap's.
#pragma once

#include <vector>

#include "allocator/engine/pages/pages_state.hpp"

namespace cistern::pages {

/// The hole that covers a place of a range. Pre: there is one.
Block& holeAt(Heap& heap, const PageRange& range, Address place) CISTERN_REQUIRES(heap.mutex());

/// Prepares for so many pages to leave memory of either kind, and to come, without host memory.
/// Throws std::bad_alloc, changing nothing.
void prepareMoves(Heap& heap, std::size_t pages) CISTERN_REQUIRES(heap.mutex());

/// The pages leave free memory. Sorts the mappings. Pre: a scan of now has found them. Throws
/// std::bad_alloc, changing nothing.
void takeOut(Heap& heap, std::vector<Mapping*>& mappings) CISTERN_REQUIRES(heap.mutex());
/// The same, and what each needs to come back is kept until Layout::endReserve.
void reserve(Heap& heap, std::vector<Mapping*>& mappings) CISTERN_REQUIRES(heap.mutex());

/// The page becomes free memory where the mapping is, last used in that epoch of the heap's.
/// Returns the block that it is part of. Pre: prepared for.
Block* putIn(Heap& heap, const Mapping& mapping, std::uint64_t last_use) noexcept
    CISTERN_REQUIRES(heap.mutex());
/// The same for a page that comes through a stale mapping of the heap's, which is its current one
/// from now on. Pre: the page has no current one, and the lock of the heap that counts it is held,
/// too.
Block* arrive(State& state, Heap& heap, Mapping& at, std::uint64_t last_use) noexcept
    CISTERN_REQUIRES(heap.mutex());
/// Pages that lie wholly free in the heap, or that it has parked, come to where these stale
/// mappings of theirs are. No device call. Returns the free block around the last. Pre: a scan of
/// now has found those that lie free. Throws std::bad_alloc, changing nothing.
Block* revive(State& state, Heap& heap, const std::vector<Mapping*>& at)
    CISTERN_REQUIRES(heap.mutex());
/// The same for pages that lie wholly free in any heaps of the pool. Memory that comes to another
/// heap counts as used until now. Sorts the mappings. Pre: prepared for in all of these heaps,
/// whose locks are held. Also pre: the stream of the heap that a page comes to follows that of the
/// heap it leaves.
void comeBack(State& state, std::vector<Mapping*>& at) noexcept;

// ---- What is done at low water (heap/low_water.hpp), and at each one: pages go home. A program
// that repeats itself finds them where they were, and its windows' mappings with them.
//
// Late pages, those that a heap made after its first low water, are parked instead. Such a program
// has begun its round without them. If they lay free when the next round begins, they would be
// small blocks of odd places. Best fit would take them for what the round before put elsewhere, and
// no window would be needed where it was. So the layout sees a hole at their home. The miss that
// took them into use in the round before finds its mapping of them there, and takes them back.
//
// Nothing is lost by it. They are all unparked first in three cases: a miss would have to map, the
// heap gives pages back, or another heap asks for pages. Pages that such a miss has no use for are
// parked again. So the round after needs no call, and unparks nothing. And late pages are few. If
// much was made since the last low water, it belongs to what rounds begin with from now on.
//
//   page.parked  =>  no current mapping, no pins, late, counted by the heap that made it, and
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
