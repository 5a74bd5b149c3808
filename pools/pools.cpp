// Pools, as a program sees it. What is done is in pool_registry.cpp and pool_queries.cpp.
#include "cistern/pool.hpp"
#include "pools/pool_registry.hpp"

namespace cistern {

Pools::Pools(CachingAllocator& allocator) : registry_(std::make_unique<PoolRegistry>(allocator)) {}

// A child of fork has a copy that its parent's threads may have been changing: it is left alone.
Pools::~Pools() {
  if (!registry_->isHere()) (void)registry_.release();
}

void Pools::createOrIncrefPool(MempoolId_t id, const PoolTraits& traits) {
  registry_->createOrIncrefPool(id, traits);
}
void Pools::releasePool(MempoolId_t id) { registry_->releasePool(id); }
int Pools::getPoolUseCount(MempoolId_t id) const { return registry_->getPoolUseCount(id); }

void Pools::beginAllocateToPool(MempoolId_t id, const PoolFilter& filter) {
  registry_->beginAllocateToPool(id, filter);
}
void Pools::endAllocateToPool(MempoolId_t id) { registry_->endAllocateToPool(id); }
void* Pools::allocate(std::size_t bytes, Stream stream, MempoolId_t id) {
  return registry_->allocate(bytes, stream, id);
}

void Pools::setUseOnOOM(MempoolId_t id, bool use) { registry_->setUseOnOOM(id, use); }
void Pools::setNoSplit(MempoolId_t id) { registry_->setNoSplit(id); }
void Pools::emptyCache(MempoolId_t id) { registry_->emptyCache(id); }
void Pools::emptyUnowned() { registry_->emptyUnowned(); }

bool Pools::checkPoolLiveAllocations(MempoolId_t id, const std::set<void*>& expected) const {
  return registry_->checkPoolLiveAllocations(id, expected);
}
PoolCheckpoint Pools::getCheckpointState(MempoolId_t id) const {
  return registry_->getCheckpointState(id);
}
CheckpointDelta Pools::setCheckpointPoolState(const PoolCheckpoint& checkpoint) {
  return registry_->setCheckpointPoolState(checkpoint);
}
MemoryStats::Values Pools::memoryStats(MempoolId_t id) const { return registry_->memoryStats(id); }

CachingAllocator& Pools::allocator() { return registry_->allocator(); }
Device& Pools::device() { return registry_->device(); }

}  // namespace cistern
