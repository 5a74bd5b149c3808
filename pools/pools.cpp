// The verbs of Pools.
#include "allocator/engine/exchange/exchange.hpp"
#include "allocator/engine/paths/slow_path.hpp"
#include "allocator/reports/accounting.hpp"
#include "cistern/pool.hpp"
#include "pools/pool_registry.hpp"
#include "pools/restoration.hpp"

namespace cistern {

Pools::Pools(CachingAllocator& allocator) : registry_(std::make_unique<PoolRegistry>(allocator)) {}

// A child of fork leaves its copy alone: its parent's threads may have been changing it.
Pools::~Pools() {
  if (!registry_->isHere()) (void)registry_.release();
}

CachingAllocator& Pools::allocator() { return registry_->allocator; }
Device& Pools::device() { return registry_->engine.device; }

// ---- Users -------------------------------------------------------------------------------------

void Pools::createOrIncrefPool(MempoolId_t id, const PoolTraits& traits) {
  constexpr const char* verb = "createOrIncrefPool";
  registry_->here(verb).addUser(verb, id, traits, LetGoBy::kVerb);
}

// While a scope of a verb is active, one user that a verb counted must stay. A MemPool or a graph
// may go at any time, and would leave the scope without its pool.
void Pools::releasePool(MempoolId_t id) {
  constexpr const char* verb = "releasePool";
  PoolRegistry& at = registry_->here(verb);
  {
    const MutexLock lock(at.users.mutex);
    const Pool& pool = at.users.live(verb, id);
    const int counted = at.users.find(verb, id).counted;
    if (counted == 0)
      refusePool(verb, id, "has only users that let go by themselves: graphs and MemPools");
    if (counted == 1 && at.scopes->activeOf(pool, LetGoBy::kVerb) > 0)
      refusePool(verb, id, "has one use left to release, for which a scope is active");
    at.users.drop(id, LetGoBy::kVerb);
  }
  at.tidy();
}

int Pools::getPoolUseCount(MempoolId_t id) const {
  const PoolRegistry& at = registry_->here("getPoolUseCount");
  const MutexLock lock(at.users.mutex);
  return at.users.find("getPoolUseCount", id).uses();
}

// ---- Requests ----------------------------------------------------------------------------------

void Pools::beginAllocateToPool(MempoolId_t id, const PoolFilter& filter) {
  (void)registry_->here("beginAllocateToPool").beginScope(id, filter, LetGoBy::kVerb);
}

void Pools::endAllocateToPool(MempoolId_t id) {
  constexpr const char* verb = "endAllocateToPool";
  PoolRegistry& at = registry_->here(verb);
  const MutexLock lock(at.users.mutex);
  if (!at.scopes->end(at.users.live(verb, id)))
    refusePool(verb, id, "has no scope that this thread could end");
  at.followScopes();
}

void* Pools::allocate(std::size_t bytes, Stream stream, MempoolId_t id, std::size_t alignment) {
  PoolRegistry& at = registry_->here("allocate");
  const PoolUsers::Visit visiting = at.users.visitLive("allocate", id);
  return slow_path::allocateAligned(at.engine, bytes, stream, &visiting.pool, alignment);
}

// ---- What a pool does --------------------------------------------------------------------------

void Pools::setUseOnOOM(MempoolId_t id, bool use) {
  PoolRegistry& at = registry_->here("setUseOnOOM");
  const MutexLock lock(at.users.mutex);
  Pool& pool = at.users.live("setUseOnOOM", id);
  if (use && pool.location() == Location::kHost) refuseLending("setUseOnOOM", id);
  at.engine.pools.setLends(pool, use);
}

void Pools::setLimit(MempoolId_t id, std::uint64_t bytes) {
  PoolRegistry& at = registry_->here("setLimit");
  const MutexLock lock(at.users.mutex);
  at.users.live("setLimit", id).limit = bytes;
}

void Pools::setNoSplit(MempoolId_t id) {
  PoolRegistry& at = registry_->here("setNoSplit");
  const MutexLock lock(at.users.mutex);
  Pool& pool = at.users.live("setNoSplit", id);
  if (pool.location() == Location::kHost)
    refusePool("setNoSplit", id, "lies in host memory, which comes in pages");
  if (!pool.change(at.engine.whole_rules, MemoryKind::kSegments))
    refusePool("setNoSplit", id, "has memory already, in blocks that share segments");
}

// The user that it adds keeps the pool, and its record, as they are. If the host has no memory for
// the pointer, that undoes what is done.
std::shared_ptr<void> Pools::hold(MempoolId_t id) {
  constexpr const char* verb = "hold";
  PoolRegistry& at = registry_->here(verb);
  (void)at.users.visitLive(verb, id);
  at.addUser(verb, id, {}, LetGoBy::kItself);
  Pool& pool = at.users.visit(verb, id).pool;
  at.engine.hold(pool, 1);
  return {&pool, [&at, id](Pool* held) {
            if (!at.mayLetGo()) return;
            at.engine.hold(*held, -1);
            at.letGo(id);
          }};
}

// Graphs that are gone may still be replaying on streams that are forgotten. These replays are
// complete when the device is. This verb waits for it, and so does the allocator's of the same
// name.
void Pools::emptyCache(MempoolId_t id) {
  PoolRegistry& at = registry_->here("emptyCache");
  const DeliverAtEnd deliver(at.engine.memory_hooks);
  if (id == MempoolId_t{}) return cistern::emptyCache(at.engine, &at.engine.default_pool);
  {
    const PoolUsers::Visit visiting = at.users.visit("emptyCache", id);
    (void)at.graphs.retired.waitForStuck();
    at.tidy();
    cistern::emptyCache(at.engine, &visiting.pool);
    at.engine.memory_hooks.deliver();
  }
  at.users.lookFirstAt(id);
  at.tidy();
}

void Pools::emptyUnowned() {
  PoolRegistry& at = registry_->here("emptyUnowned");
  const DeliverAtEnd deliver(at.engine.memory_hooks);
  cistern::emptyCache(at.engine, nullptr, true);
  at.engine.memory_hooks.deliver();
  (void)at.tidyForMemory(Tidying::kEmptied);
}

// ---- What a pool holds -------------------------------------------------------------------------

bool Pools::checkPoolLiveAllocations(MempoolId_t id, const std::set<void*>& expected) const {
  constexpr const char* verb = "checkPoolLiveAllocations";
  const PoolUsers::Visit visiting = registry_->here(verb).users.visit(verb, id);
  std::set<void*> live_now;
  for (const LiveBlock& block : liveBlocks(visiting.pool))
    live_now.insert(toPointer(block.address));
  return live_now == expected;
}

PoolCheckpoint Pools::getCheckpointState(MempoolId_t id) const {
  constexpr const char* verb = "getCheckpointState";
  const PoolUsers::Visit visiting = registry_->here(verb).users.visit(verb, id);
  return {id, liveBlocks(visiting.pool)};
}

CheckpointDelta Pools::setCheckpointPoolState(const PoolCheckpoint& checkpoint) {
  constexpr const char* verb = "setCheckpointPoolState";
  PoolRegistry& at = registry_->here(verb);
  const PoolUsers::Visit visiting = at.users.visit(verb, checkpoint.id);
  try {
    // The work of other streams with freed blocks may be complete by now.
    at.engine.pending.poll();
    return restore(at.engine, visiting.pool, checkpoint.blocks);
  } catch (const PoolError& error) {
    refusePool(verb, checkpoint.id, error.what());
  }
}

MemoryStats::Values Pools::memoryStats(MempoolId_t id) const {
  return statsOf(registry_->here("memoryStats").users.visit("memoryStats", id).pool);
}

}  // namespace cistern
