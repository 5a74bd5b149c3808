// Pages leave the free memory of a heap, and come back to it. The layout sees a hole meanwhile.
// Under the backing's lock and the heap's.
#pragma once

#include <vector>

#include "allocator/engine/pages/ground.hpp"

namespace cistern::pages {

/// The hole that covers a place of a range. Pre: there is one.
Block& holeAt(Heap& heap, const PageRange& range, Address place) CISTERN_REQUIRES(heap.mutex());

/// So many pages may leave memory of either kind, and come, without the host's. Throws
/// std::bad_alloc, changing nothing.
void prepareMoves(Heap& heap, std::size_t pages) CISTERN_REQUIRES(heap.mutex());

/// The pages leave free memory. Sorts the mappings. Pre: a scan of now has found them. Throws
/// std::bad_alloc, changing nothing.
void takeOut(Heap& heap, std::vector<Mapping*>& mappings) CISTERN_REQUIRES(heap.mutex());
/// The same, and what each needs to come back is kept until Layout::endReserve.
void reserve(Heap& heap, std::vector<Mapping*>& mappings) CISTERN_REQUIRES(heap.mutex());

/// The page is free memory where the mapping is, last used in that epoch of the heap's: of the
/// block returned. Pre: prepared for.
Block* putIn(Heap& heap, const Mapping& mapping, std::uint64_t last_use) noexcept
    CISTERN_REQUIRES(heap.mutex());
/// The same of a page that comes through a stale mapping of the heap's, which is its current one
/// from now on. Pre: the page has none, and the lock of the heap that counts it is held, too.
Block* arrive(Ground& ground, Heap& heap, Mapping& at, std::uint64_t last_use) noexcept
    CISTERN_REQUIRES(heap.mutex());
/// Pages that lie wholly free in the heap, or that it has put aside, come to where these stale
/// mappings of theirs are. No device call. Returns the free block around the last. Pre: a scan of
/// now has found those that lie free. Throws std::bad_alloc, changing nothing.
Block* revive(Ground& ground, Heap& heap, const std::vector<Mapping*>& at)
    CISTERN_REQUIRES(heap.mutex());
/// The same of pages that lie wholly free in any heaps of the pool: memory that comes to another
/// heap counts as used until now. Sorts the mappings. Pre: prepared for in all of these heaps,
/// whose locks are held, and the stream of the one that a page comes to follows that of the one it
/// leaves.
void comeBack(Ground& ground, std::vector<Mapping*>& at) noexcept;

// ---- What is done at low water (heap/low_water.hpp), and at each one: pages go home. A program
// that repeats itself finds them where they were, and its windows' mappings with them.
//
// Late pages, those that a heap made after its first low water, go aside instead. Such a program
// has begun its round without them; if they lay free when the next one begins, small blocks of odd
// places, best fit would take them for what the round before put elsewhere, and no window would be
// needed where it was. So to the layout their home is a hole. What took them into use in the round
// before, a miss, finds its mapping of them there and takes them back.
//
// Nothing is lost by it: a miss that would have to map anything, a heap that gives pages back and
// one that is asked by another for its pages bring all of them back first. What such a miss has no
// use for goes aside again: the round after needs no call, and brings nothing back. And they are
// few: where much was made since the last low water, it belongs to what rounds begin with from now
// on.
//
//   page.aside  =>  no current mapping, no pins, late, counted by the heap that made it, and
//                   mapped at home, through which it comes back

/// What lies wholly free in the heap goes home, as far as it is mapped there, or aside. Throws
/// std::bad_alloc: then pages stay where they are until the next low water.
void sendHome(Ground& ground, Heap& heap) CISTERN_REQUIRES(heap.mutex());
/// Late pages that lie wholly free at home go aside: all, or those that were brought back for that
/// miss. Where the host is short of memory they stay.
void putAside(Ground& ground, Heap& heap, std::uint64_t brought_for = 0) noexcept
    CISTERN_REQUIRES(heap.mutex());
/// What the heap has put aside is free memory of it again, for that miss or for none. Throws
/// std::bad_alloc, changing nothing.
void bringBack(Ground& ground, Heap& heap, std::uint64_t miss = 0) CISTERN_REQUIRES(heap.mutex());

}  // namespace cistern::pages
