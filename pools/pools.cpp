// Pools, as a program sees it. The work is in pool_registry.cpp and pool_queries.cpp.
#include "cistern/pool.hpp"
#include "pools/pool_registry.hpp"

namespace cistern {

Pools::Pools(CachingAllocator& allocator) : registry_(std::make_unique<PoolRegistry>(allocator)) {}

// A child of fork leaves its copy alone: its parent's threads may have been changing it.
Pools::~Pools() {
  if (!registry_->isHere()) (void)registry_.release();
}

void Pools::createOrIncrefPool(MempoolId_t id, const PoolTraits& traits) {
  registry_->here("createOrIncrefPool").createOrIncrefPool(id, traits);
}
void Pools::releasePool(MempoolId_t id) { registry_->here("releasePool").releasePool(id); }
int Pools::getPoolUseCount(MempoolId_t id) const {
  return registry_->here("getPoolUseCount").getPoolUseCount(id);
}

void Pools::beginAllocateToPool(MempoolId_t id, const PoolFilter& filter) {
  registry_->here("beginAllocateToPool").beginAllocateToPool(id, filter);
}
void Pools::endAllocateToPool(MempoolId_t id) {
  registry_->here("endAllocateToPool").endAllocateToPool(id);
}
void* Pools::allocate(std::size_t bytes, Stream stream, MempoolId_t id) {
  return registry_->here("allocate").allocate(bytes, stream, id);
}

void Pools::setUseOnOOM(MempoolId_t id, bool use) {
  registry_->here("setUseOnOOM").setUseOnOOM(id, use);
}
void Pools::setNoSplit(MempoolId_t id) { registry_->here("setNoSplit").setNoSplit(id); }
void Pools::emptyCache(MempoolId_t id) { registry_->here("emptyCache").emptyCache(id); }
void Pools::emptyUnowned() { registry_->here("emptyUnowned").emptyUnowned(); }

bool Pools::checkPoolLiveAllocations(MempoolId_t id, const std::set<void*>& expected) const {
  return registry_->here("checkPoolLiveAllocations").checkPoolLiveAllocations(id, expected);
}
PoolCheckpoint Pools::getCheckpointState(MempoolId_t id) const {
  return registry_->here("getCheckpointState").getCheckpointState(id);
}
CheckpointDelta Pools::setCheckpointPoolState(const PoolCheckpoint& checkpoint) {
  return registry_->here("setCheckpointPoolState").setCheckpointPoolState(checkpoint);
}
MemoryStats::Values Pools::memoryStats(MempoolId_t id) const {
  return registry_->here("memoryStats").memoryStats(id);
}

CachingAllocator& Pools::allocator() { return registry_->allocator(); }
Device& Pools::device() { return registry_->device(); }

}  // namespace cistern
