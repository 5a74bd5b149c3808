// Serves one miss: finds a window for the request, brings pages there, and hands the block out. All
// of it happens, or none.
//
//   take      under the heap's lock: the window's free blocks, and the pages that will come, become
//             holes, so that nobody else gets them                          (reserve.cpp)
//   fill      the gaps with pages: the heap's own free ones, those of other heaps whose last use is
//             complete, new ones, those of other heaps in the order of streams  (sources.cpp)
//   map       the device calls                                              (reserve.cpp)
//   commit    the window becomes free memory, and the request a block of it
//   undo      or everything goes back to where it was
//
// Why a page may be used at its new address while queued work still uses it at the old one: pages
// of the heap's own were used on the heap's stream, and what is queued there from now on comes
// later; those of other heaps are complete, or ordered before by an event. The old mapping stays
// until that work is complete, and its addresses are a hole until then (release.cpp). In a capture
// that order is the graph's; and what a graph reaches through the old mapping comes before or
// after, as graphs of one pool never run at the same time (page.hpp).
#pragma once

#include "allocator/engine/pages/ground.hpp"

namespace cistern::pages {

/// The block; null when it cannot be had, and then all is as it was but for pages returned. Pre:
/// the backing's lock is held, and the heap has a range of the request's kind. Throws
/// std::bad_alloc, so too.
Block* serveMiss(Ground& ground, Heap& heap, const Request& request, PagesFrom from);

}  // namespace cistern::pages
