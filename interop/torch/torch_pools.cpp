#include "torch_pools.hpp"

#include <algorithm>
#include <set>
#include <string>

#include "cistern/device.hpp"

namespace cistern_torch {

namespace {

thread_local PoolMemory pools_ahead = PoolMemory::kSegments;

}  // namespace

void setPoolsAhead(PoolMemory memory) { pools_ahead = memory; }
PoolMemory poolsAhead() { return pools_ahead; }

TorchPools::TorchPools(cistern::Pools& pools) : pools_(pools) {
  pools_.allocator().registerReclaimCallback([this] { return settle(); });
}

const TorchPools::Pool* TorchPools::find(TorchPoolId id) const {
  const auto found = table_.find(id);
  return found != table_.end() && found->second.uses > 0 ? &found->second : nullptr;
}

// PyTorch uses a name again after its last user has gone, when Cistern's pool of that name may be
// draining still. So the names in there are Cistern's own.
TorchPools::Pool& TorchPools::pool(TorchPoolId id, std::shared_ptr<cistern::SegmentSource> source) {
  if (find(id) == nullptr) forgetGone();
  Pool& pool = table_[id];
  if (pool.uses > 0) return pool;
  if (!pool.resting) {
    pool.id = cistern::graphPoolHandle(id.first == 0);
    cistern::PoolTraits traits;
    traits.source = std::move(source);
    if (pools_ahead == PoolMemory::kHost) traits.location = cistern::Location::kHost;
    pools_.createOrIncrefPool(pool.id, traits);
    const std::lock_guard naming(naming_);
    names_[pool.id] = id;
  }
  pool.resting = false;
  return pool;
}

// So that the tables grow with the pools that are there, and not with all that there were.
void TorchPools::forgetGone() {
  const std::lock_guard naming(naming_);
  std::erase_if(names_, [&](const auto& entry) {
    try {
      pools_.getPoolUseCount(entry.first);
      return false;
    } catch (const cistern::PoolError&) {
      return true;
    }
  });
  std::erase_if(table_, [&](const auto& entry) {
    const Pool& pool = entry.second;
    return pool.uses == 0 && !pool.resting && names_.count(pool.id) == 0;
  });
}

const TorchPools::Pool& TorchPools::known(const char* verb, TorchPoolId id) const {
  if (const Pool* const found = find(id)) return *found;
  throw cistern::PoolError(std::string(verb) + ": pool " +
                           cistern::poolName({id.first, id.second}) + " is not there");
}

void TorchPools::count(TorchPoolId id, std::shared_ptr<cistern::SegmentSource> source) {
  const std::lock_guard lock(mutex_);
  ++pool(id, std::move(source)).uses;
}

int TorchPools::uses(TorchPoolId id) const {
  const std::lock_guard lock(mutex_);
  const Pool* const found = find(id);
  return found == nullptr ? 0 : found->uses;
}

void TorchPools::release(TorchPoolId id) {
  const std::lock_guard lock(mutex_);
  known("releasePool", id);
  findOver();
  noteReserved(id);
  Pool& pool = table_[id];
  if (pool.uses == 1) closeRegions([&](const Region& region) { return region.id == id; });
  const auto over = std::find_if(regions_.begin(), regions_.end(), [&](const Region& region) {
    return region.id == id && region.kind == Kind::kOver && region.counts;
  });
  if (over != regions_.end()) over->counts = false;  // its user, as far as anyone can tell
  letGoOf(pool);
}

void TorchPools::letGoOf(Pool& pool) {
  if (--pool.uses > 0) return;
  pool.resting = !pool.graphs.empty();
  if (!pool.resting) pools_.releasePool(pool.id);
}

void TorchPools::setLends(TorchPoolId id, bool lends) {
  const std::lock_guard lock(mutex_);
  pools_.setUseOnOOM(known("setUseOnOOM", id).id, lends);
}

void TorchPools::setNoSplit(TorchPoolId id) {
  const std::lock_guard lock(mutex_);
  pools_.setNoSplit(known("setNoSplit", id).id);
}

// A MemPool empties its pool after it has let go of it: the pool may be draining, or gone. This
// waits for queued work, as PyTorch does; so all free memory goes back now. A capture forbids it.
void TorchPools::emptyCache(TorchPoolId id) {
  {
    const std::lock_guard lock(mutex_);
    closeOver();
    if (!mayCapture() && pools_.device().synchronizeDevice().ok()) letGoOfResting();
    if (id != TorchPoolId{0, 0}) {
      const auto found = table_.find(id);
      if (found == table_.end()) return;
      try {
        pools_.emptyCache(found->second.id);
      } catch (const cistern::PoolError&) {  // gone
      }
      return;
    }
  }
  pools_.emptyUnowned();
}

bool TorchPools::settle() {
  const std::lock_guard lock(mutex_);
  return settleLocked();
}

bool TorchPools::settleLocked() {
  const bool any = std::any_of(table_.begin(), table_.end(),
                               [](const auto& entry) { return entry.second.resting; });
  if (!any || mayCapture() || !pools_.device().synchronizeDevice().ok()) return false;
  letGoOfResting();
  return true;
}

// Pre: the device has come to rest since they began to rest.
void TorchPools::letGoOfResting() {
  for (auto& [id, pool] : table_) {
    if (!pool.resting) continue;
    pool.graphs.clear();
    pool.resting = false;
    pools_.releasePool(pool.id);
  }
}

bool TorchPools::holdsExactly(TorchPoolId id, const std::unordered_set<void*>& expected) const {
  const std::lock_guard lock(mutex_);
  const Pool* const found = find(id);
  if (found == nullptr) return expected.empty();
  return pools_.checkPoolLiveAllocations(found->id,
                                         std::set<void*>(expected.begin(), expected.end()));
}

cistern::PoolCheckpoint TorchPools::checkpoint(TorchPoolId id) const {
  const std::lock_guard lock(mutex_);
  return pools_.getCheckpointState(known("getCheckpointState", id).id);
}

cistern::CheckpointDelta TorchPools::restore(const cistern::PoolCheckpoint& checkpoint) {
  return pools_.setCheckpointPoolState(checkpoint);
}

TorchPoolId TorchPools::nameOf(cistern::MempoolId_t id) const {
  const std::lock_guard naming(naming_);
  const auto found = names_.find(id);
  return found == names_.end() ? TorchPoolId{id.uuid, id.uid} : found->second;
}

// The memory that each pool reserves, as PyTorch's statistics have it.

void TorchPools::countReserved() {
  const std::lock_guard lock(mutex_);
  counts_reserved_ = true;
}

// Pre: the lock is held, as in all functions here that the class keeps to itself.
void TorchPools::noteReserved(TorchPoolId id) {
  if (!counts_reserved_) return;
  std::int64_t now = 0;
  const auto pool = table_.find(id);
  try {
    if (pool != table_.end()) {
      const auto stats = pools_.memoryStats(pool->second.id);
      now = stats[std::size_t(cistern::Stat::kReservedBytes)].current;
    }
  } catch (const cistern::PoolError&) {  // gone
  }
  if (now == 0 && reserved_.count(id) == 0) return;
  cistern::StatValue& value = reserved_[id];
  const std::int64_t rise = now - value.current;
  (rise > 0 ? value.allocated : value.freed) += std::abs(rise);
  value.current = now;
  value.peak = std::max(value.peak, now);
}

void TorchPools::noteAllReserved() {
  for (const auto& [id, pool] : table_) noteReserved(id);
  for (const auto& [id, value] : reserved_) {
    if (table_.count(id) == 0) noteReserved(id);
  }
}

std::map<TorchPoolId, cistern::StatValue> TorchPools::reserved() {
  const std::lock_guard lock(mutex_);
  noteAllReserved();
  return reserved_;
}

// So that the table does not grow with all pools that there ever were.
void TorchPools::dropUnreserved() {
  std::erase_if(reserved_, [](const auto& entry) {
    const cistern::StatValue& value = entry.second;
    return value.current == 0 && value.peak == 0 && value.allocated == 0 && value.freed == 0;
  });
}

void TorchPools::resetReservedPeaks() {
  const std::lock_guard lock(mutex_);
  noteAllReserved();
  for (auto& [id, value] : reserved_) value.peak = value.current;
  dropUnreserved();
}

void TorchPools::resetReservedTotals() {
  const std::lock_guard lock(mutex_);
  noteAllReserved();
  for (auto& [id, value] : reserved_) value.allocated = value.freed = 0;
  dropUnreserved();
}

}  // namespace cistern_torch
