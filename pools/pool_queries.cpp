// What a pool does and holds. See pools.hpp.
#include <algorithm>

#include "pools/pools.hpp"

namespace cistern {
namespace {

std::vector<void*> addressesOf(const std::vector<LiveBlock>& blocks) {
  std::vector<void*> addresses;
  for (const LiveBlock& block : blocks) addresses.push_back(toPointer(block.address));
  return addresses;
}

}  // namespace

void Pools::setUseOnOOM(MempoolId_t id, bool use) {
  const MutexLock lock(mutex_);
  live("setUseOnOOM", id).lends = use;
}

void Pools::setNoSplit(MempoolId_t id) {
  const MutexLock lock(mutex_);
  if (!allocator_.setNoSplit(live("setNoSplit", id))) {
    refuse("setNoSplit", id, "has memory already, in blocks that share segments");
  }
}

// What graphs that are gone may still be replaying on streams that are gone too is complete when
// the device is: this is the verb that asks.
void Pools::emptyCache(MempoolId_t id) {
  if (id == MempoolId_t{}) return allocator_.emptyCache(allocator_.defaultPool());
  {
    const MutexLock lock(mutex_);
    (void)entry("emptyCache", id);
  }
  {
    const MutexLock lock(retired_mutex_);
    for (Retirement& one : retired_) {
      if (one.holds(id)) one.waitForUnknown();
    }
  }
  tidy();  // what graphs that are gone have held is free now; the pool may be gone, too
  {
    const MutexLock lock(mutex_);
    const auto it = entries_.find(id);
    if (it != entries_.end()) allocator_.emptyCache(*it->second.pool);
  }
  tidy();
}

bool Pools::checkPoolLiveAllocations(MempoolId_t id, const std::set<void*>& expected) const {
  const MutexLock lock(mutex_);
  const auto live_now =
      addressesOf(allocator_.liveBlocks(*entry("checkPoolLiveAllocations", id).pool));
  return std::set<void*>(live_now.begin(), live_now.end()) == expected;
}

PoolCheckpoint Pools::getCheckpointState(MempoolId_t id) const {
  const MutexLock lock(mutex_);
  return {id, allocator_.liveBlocks(*entry("getCheckpointState", id).pool)};
}

CheckpointDelta Pools::setCheckpointPoolState(const PoolCheckpoint& checkpoint) {
  const MutexLock lock(mutex_);
  Pool& pool = *entry("setCheckpointPoolState", checkpoint.id).pool;
  std::vector<LiveBlock> freed, made;
  allocator_.restore(pool, checkpoint.blocks, freed, made);
  return {addressesOf(freed), addressesOf(made)};
}

MemoryStats::Values Pools::memoryStats(MempoolId_t id) const {
  const MutexLock lock(mutex_);
  return allocator_.poolStats(*entry("memoryStats", id).pool);
}

}  // namespace cistern
