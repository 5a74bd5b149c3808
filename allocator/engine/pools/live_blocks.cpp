#include <algorithm>

#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/pools/restoration.hpp"

namespace cistern {

std::vector<LiveBlock> liveBlocks(const Engine& engine, const Pool& pool) {
  std::vector<LiveBlock> live;
  for (Heap* heap : engine.heapsOf(pool)) {
    const MutexLock lock(heap->mutex());
    const HeldCaches held_still(*heap);
    forEachHeld(*heap, [&](const LiveBlock& block, const Block&) { live.push_back(block); });
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
