// What is done at low water (../low_water.hpp), and at each one: pages go home. A program that
// repeats itself finds them where they were, and its windows' mappings with them.
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
//
// All of it under the backing's lock.
#pragma once

#include "allocator/engine/pages/ground.hpp"

namespace cistern::pages {

/// What lies wholly free in the heap goes home, as far as it is mapped there, or aside. Throws
/// std::bad_alloc, changing nothing but what counts as home.
void sendHome(Ground& ground, Heap& heap) CISTERN_REQUIRES(heap.mutex());
/// Late pages that lie wholly free at home go aside: all, or those that were brought back for that
/// miss. Where the host is short of memory they stay.
void putAside(Ground& ground, Heap& heap, std::uint64_t brought_for = 0) noexcept
    CISTERN_REQUIRES(heap.mutex());
/// What the heap has put aside is free memory of it again, for that miss or for none. Throws
/// std::bad_alloc, changing nothing.
void bringBack(Ground& ground, Heap& heap, std::uint64_t miss = 0) CISTERN_REQUIRES(heap.mutex());
/// The page is aside no longer: somebody takes it into use. Pre: the lock of its heap is held.
void takeFromAside(PhysicalPage& page) noexcept;

}  // namespace cistern::pages
