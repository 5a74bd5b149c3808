// The blocks held in a pool, as the pool's user sees them.
#pragma once

#include <vector>

#include "allocator/engine/engine.hpp"

namespace cistern {

/// The blocks held in the pool, by address; not what it has lent to the default pool.
std::vector<LiveBlock> liveBlocks(const Pool& pool);
/// Whether liveBlocks can have returned that.
bool areLiveBlocks(const std::vector<LiveBlock>& blocks);
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

}  // namespace cistern
