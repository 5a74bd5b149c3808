// Late pages: those that a heap made after its first low water. A program that repeats itself has
// begun its round without them; if they lay free when the next one begins, small blocks of odd
// places, best fit would take them for what the round before put elsewhere, and no window would be
// needed where it was. So at low water they are put aside: to the layout their home is a hole. What
// took them into use in the round before, a miss, finds its mapping of them there and takes them
// back.
//
// Nothing is lost by it: a miss that would have to map anything, a heap that gives pages back and
// one that is asked by another for its pages bring all of them back first. And they are few: where
// much was made since the last low water, it belongs to what rounds begin with from now on.
//
//   page.parked  =>  no current mapping, no pins, counted by the heap that made it, and mapped at
//   home
//
// All of it under the backing's lock.
#pragma once

#include "allocator/engine/pages/ground.hpp"

namespace cistern::pages {

/// At most this part of a heap's memory is put aside at a low water. Where twice as much lies there
/// already all of it comes back, and is late no longer.
inline constexpr std::uint64_t kPartAside = 16;

/// Puts a page aside that has left its heap's free memory, with room for it in ground.parked. Pre:
/// it is late, made by that heap, and may leave.
void park(Ground& ground, Mapping& from) noexcept;
/// The same of a page that was aside until now, and was of no use: there is room for it still.
void parkAgain(Ground& ground, PhysicalPage& page) noexcept;

/// The page is aside no longer: somebody takes it into use, through one of its mappings. The epoch
/// that its memory is stamped with. Pre: it is parked, by this heap.
std::uint32_t unpark(Ground& ground, PhysicalPage& page, Heap& heap) noexcept
    CISTERN_REQUIRES(heap.mutex());

/// What the heap has put aside is free memory of it again, for a miss or for none. False when there
/// was nothing. Throws std::bad_alloc, changing nothing.
bool bringBack(Ground& ground, Heap& heap, std::uint64_t miss = 0) CISTERN_REQUIRES(heap.mutex());
/// What was brought back for the miss, and still lies free at home, goes aside again. Throws
/// std::bad_alloc, changing nothing.
void putAside(Ground& ground, Heap& heap, std::uint64_t miss) CISTERN_REQUIRES(heap.mutex());
/// Of the heap.
std::uint64_t bytesAside(const Ground& ground, const Heap& heap);

}  // namespace cistern::pages
