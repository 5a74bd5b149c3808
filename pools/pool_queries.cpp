// The verbs on a pool's settings and contents. See pool.hpp.
#include <algorithm>

#include "allocator/engine/giving_back/giving_back.hpp"
#include "allocator/engine/reports/accounting.hpp"
#include "allocator/engine/restoration/restoration.hpp"
#include "pools/pool_registry.hpp"

namespace cistern {
namespace {

std::vector<void*> addressesOf(const std::vector<LiveBlock>& blocks) {
  std::vector<void*> addresses;
  for (const LiveBlock& block : blocks) addresses.push_back(toPointer(block.address));
  return addresses;
}

}  // namespace

void PoolRegistry::setUseOnOOM(MempoolId_t id, bool use) {
  const MutexLock lock(mutex_);
  allocator_.engine().pools.setLends(live("setUseOnOOM", id), use);
}

void PoolRegistry::setNoSplit(MempoolId_t id) {
  const MutexLock lock(mutex_);
  Engine& engine = allocator_.engine();
  if (!live("setNoSplit", id).change(engine.whole_rules, false))
    refuse("setNoSplit", id, "has memory already, in blocks that share segments");
}

// Graphs that are gone may still be replaying on streams that are gone too. These replays are
// complete when the device is. This verb waits for it, and so does the allocator's of the same
// name.
void PoolRegistry::emptyCache(MempoolId_t id) {
  if (id == MempoolId_t{})
    return cistern::emptyCache(allocator_.engine(), &allocator_.engine().default_pool);
  {
    const Visit visiting = visit("emptyCache", id);
    retired.waitForUnknown(id);
    tidy();
    cistern::emptyCache(allocator_.engine(), &visiting.pool);
  }
  lookFirstAt(id);
  tidy();
}

void PoolRegistry::emptyUnowned() {
  cistern::emptyCache(allocator_.engine(), nullptr, true);
  (void)tidyForMemory(Tidying::kEmptied);
}

bool PoolRegistry::checkPoolLiveAllocations(MempoolId_t id, const std::set<void*>& expected) const {
  const Visit visiting = visit("checkPoolLiveAllocations", id);
  const auto live_now = addressesOf(liveBlocks(visiting.pool));
  return std::set<void*>(live_now.begin(), live_now.end()) == expected;
}

PoolCheckpoint PoolRegistry::getCheckpointState(MempoolId_t id) const {
  const Visit visiting = visit("getCheckpointState", id);
  return {id, liveBlocks(visiting.pool)};
}

CheckpointDelta PoolRegistry::setCheckpointPoolState(const PoolCheckpoint& checkpoint) {
  const Visit visiting = visit("setCheckpointPoolState", checkpoint.id);
  try {
    // The work of other streams with freed blocks may be complete by now.
    allocator_.engine().pending.poll();
    return restore(allocator_.engine(), visiting.pool, checkpoint.blocks);
  } catch (const PoolError& error) {
    const MutexLock lock(mutex_);
    refuse("setCheckpointPoolState", checkpoint.id, error.what());
  }
}

MemoryStats::Values PoolRegistry::memoryStats(MempoolId_t id) const {
  const Visit visiting = visit("memoryStats", id);
  return statsOf(visiting.pool);
}

}  // namespace cistern
