// The sums of what an allocator's parts count, and the blocks that are held. Thread-safe. A
// function that looks at all heaps holds them still meanwhile.
#pragma once

#include "allocator/engine/engine.hpp"
#include "cistern/allocator.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

/// CachingAllocator::memoryStats.
MemoryStats statsOf(Engine& engine);

/// The pool's usage at this moment: each `current`, and nothing else.
MemoryStats::Values statsOf(const Pool& pool);

/// The block as the pool's user sees it. Pre: its heap's lock is held, and it is allocated.
inline LiveBlock liveOf(const Block& block) {
  return {deviceAddress(block), block.bytes(), ownership::requested(block),
          heapOf(block).streamOf(block)};
}

/// Calls visit(Block&) for each block that the pool's users hold in the heap. Pre: its caches are
/// empty.
template <class Visit>
void forEachHeld(Heap& heap, Visit visit) CISTERN_REQUIRES(heap.mutex()) {
  forEachBlock(heap, [&](Block& block) {
    if (block.state() == BlockState::kAllocated && block.epoch != Request::kLent) visit(block);
  });
}
/// The blocks held in the pool, by address; not what it has lent to the default pool.
std::vector<LiveBlock> liveBlocks(const Pool& pool);

}  // namespace cistern
