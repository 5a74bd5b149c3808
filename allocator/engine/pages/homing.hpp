// Sending pages home. It takes no device call, and is done when a heap is at low water
// (low_water.hpp): a program that repeats itself then begins each time with its pages where they
// were the time before, comes to need the same windows, finds the pages of each in the same places,
// and takes the mappings back into use that are still there. After two or three rounds it makes no
// calls.
//
// A page's home is where it lies when a low water finds it free for the first time: its first round
// has brought it there, and left what lies beside it in one piece. (Until then it is where the page
// was mapped first.)
#pragma once

#include "allocator/engine/pages/ground.hpp"

namespace cistern::pages {

/// Every page of the heap that lies wholly free goes home, if it is still mapped there; or aside
/// (parking.hpp). Pre: the backing's lock is held. Throws std::bad_alloc.
void sendHome(Ground& ground, Heap& heap) CISTERN_REQUIRES(heap.mutex());

}  // namespace cistern::pages
