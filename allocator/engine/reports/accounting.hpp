// The contents of an allocator as a whole, and its invariants. Thread-safe. A function that looks
// at all heaps holds them still meanwhile.
#pragma once

#include "allocator/engine/engine.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

/// CachingAllocator::memoryStats.
MemoryStats statsOf(Engine& engine);

/// The pool's usage at this moment: each `current`, and nothing else.
MemoryStats::Values statsOf(const Pool& pool);
/// A block as a snapshot shows it. Pre: the caller holds the lock of its heap. If the heap
/// `sleeps`, or its pages may lie `on_host`, it holds the page backing's too.
SnapshotBlock pictureOf(const Engine& engine, const Heap& heap, const Block& block, bool sleeps,
                        bool on_host);
/// Checks the invariants of heaps, caches, pages, the segment map and the limit; aborts on a broken
/// one.
void audit(Engine& engine);

}  // namespace cistern
