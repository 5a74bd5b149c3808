// The contents of an allocator as a whole, and its invariants. Thread-safe. A function that looks
// at all heaps holds them still meanwhile.
#pragma once

#include <vector>

#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/engine.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

/// The pool's usage at this moment: each `current`, and nothing else.
MemoryStats::Values statsOf(const Pool& pool);
/// Bytes that lie free in the heaps. Blocks that a thread's cache keeps do not.
std::uint64_t freeBytes(const std::vector<Heap*>& heaps);
/// Every segment and block (reports/reports.cpp). Throws std::bad_alloc.
Snapshot snapshotOf(Engine& engine);
/// Checks the invariants of heaps, caches, pages, the segment map and the limit; aborts on a broken
/// one.
void audit(Engine& engine);

/// Calls visit(const std::vector<Heap*>&) with the locks of all heaps held and the threads' caches
/// empty. The heaps are in the order in which they were made.
template <class Visit>
void withAllHeaps(Engine& engine, Visit visit) {
  const MutexLock lock(engine.heaps_mutex);
  std::vector<Heap*> heaps = engine.heaps.all();
  const HeapLocks locks(engine.heaps_mutex, heaps);
  const HeldCaches held_still(heaps);
  visit(heaps);
}

}  // namespace cistern
