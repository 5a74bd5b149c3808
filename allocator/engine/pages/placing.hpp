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
/// from now on. Pre: it has none, and the lock of the heap that counts it is held, too.
Block* arrive(Ground& ground, Heap& heap, Mapping& at, std::uint64_t last_use) noexcept
    CISTERN_REQUIRES(heap.mutex());
/// Pages that lie wholly free in the heap, or that it has put aside, come to where these stale
/// mappings of theirs are. No device call. Returns the free block around the last. Pre: a scan of
/// now has found those that lie free. Throws std::bad_alloc, changing nothing.
Block* revive(Ground& ground, Heap& heap, const std::vector<Mapping*>& at)
    CISTERN_REQUIRES(heap.mutex());
/// The same of one page that lies wholly free in any heap of the pool: its memory counts as used
/// until now. Pre: prepared for in both heaps, whose locks are held, and the stream of the one that
/// it comes to follows that of the one it leaves.
void comeBack(Ground& ground, Mapping& at) noexcept;
}  // namespace cistern::pages
