// The blocks held in a pool, and setting it back to those that it held at an earlier moment.
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

/// Makes the blocks of `wanted` live in the pool, at their addresses, and no others. Work of their
/// streams from now on comes after all that was done with that memory. Throws std::bad_alloc and
/// PoolError, changing nothing. PoolError: some of the memory is no longer the pool's, that order
/// cannot be had, or a capture into the pool is under way. Also: a block that is to be made is for
/// a stream that was forgotten and not named since. Also: liveBlocks cannot have returned `wanted`.
CheckpointDelta restore(Engine& engine, Pool& pool, const std::vector<LiveBlock>& wanted);

}  // namespace cistern
