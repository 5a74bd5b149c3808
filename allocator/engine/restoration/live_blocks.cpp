#include "allocator/engine/restoration/live_blocks.hpp"

#include <algorithm>

#include "allocator/engine/cache/held_caches.hpp"

namespace cistern {

std::vector<LiveBlock> liveBlocks(const Pool& pool) {
  std::vector<LiveBlock> live;
  for (Heap* heap : pool.heaps()) {
    const MutexLock lock(heap->mutex());
    const HeldCaches held_still(*heap);
    forEachHeld(*heap, [&](const Block& block) { live.push_back(liveOf(block)); });
  }
  std::ranges::sort(live, {}, &LiveBlock::address);
  return live;
}

// They are in order, in granules, and each within the address space.
bool areLiveBlocks(const std::vector<LiveBlock>& blocks) {
  Address free_from = 0;
  for (const LiveBlock& block : blocks) {
    const bool whole = block.address % kGranule == 0 && block.bytes % kGranule == 0;
    if (!whole || block.address < free_from || block.requested == 0) return false;
    if (block.requested > block.bytes || block.bytes > kLargestRequest) return false;
    free_from = block.address + block.bytes;
  }
  return free_from < Address{1} << 57;
}

}  // namespace cistern
