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

/// The pages leave free memory. What each needs to come back is kept until Layout::endReserve.
/// Sorts the mappings. Pre: a scan under the same hold of the heap's lock has found them. Throws
/// std::bad_alloc, changing nothing.
void reserve(Heap& heap, std::vector<Mapping*>& mappings) CISTERN_REQUIRES(heap.mutex());

/// The page becomes free memory where the mapping is, last used in that epoch of the heap's.
/// Returns the block that it is part of. Pre: prepared for.
Block* putIn(Heap& heap, const Mapping& mapping, std::uint64_t last_use) noexcept
    CISTERN_REQUIRES(heap.mutex());
/// Pages that lie wholly free in the heap, or in the heap beside it, come to where these stale
/// mappings of theirs are. No device call. Returns the free block around the last. Pre: scans under
/// the same hold of the heaps' locks have found those that lie free. Throws std::bad_alloc,
/// changing nothing.
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

/// Pages that lie wholly free in the heap go home, as far as they are mapped there. Throws
/// std::bad_alloc; then pages stay where they are until the next low water.
void sendHome(State& state, Heap& heap) CISTERN_REQUIRES(heap.mutex());

}  // namespace cistern::pages
