// Pools come and go, scopes, lending, and what a pool says of itself. Checkpoints are in
// checkpoint_operations.cpp.
#include <set>
#include <utility>

#include "tests/stress/pools/checkpoints.hpp"
#include "tests/stress/pools/pool_work.hpp"
#include "tests/stress/pools/pool_worker.hpp"

namespace cistern::storm {
namespace {

// Its MemPool ends now, or later if others use it.
void endUser(PoolModel& pool) {
  const Use alone = Use::alone(pool.users);
  if (!alone || !pool.user) return;
  note("  the user of pool {} ends", pool.number);
  pool.user = nullptr;
  pool.used = false;
}

void renew(Worker& worker) {
  const std::size_t place = 1 + worker.random.below(World::kOpenPools - 1);
  try {
    if (const PoolRef old = worker.world.renewPool(place, worker.random)) endUser(*old);
  } catch (const DeviceFailure& failure) {
    worker.world.expected(failure, "MemPool");
  }
}

void endOld(Worker& worker) {
  const PoolRef pool = worker.world.anyPool(worker.random);
  bool open = false;
  for (int i = 0; i < 8; ++i) open |= worker.world.openPool(worker.random) == pool;
  if (!open && worker.random.oneIn(2)) endUser(*pool);
  worker.world.sweep();
}

// A scope within a scope: the inner one's pool is the request's.
void inScopes(Worker& worker) {
  World& world = worker.world;
  const PoolRef outer = world.openPool(worker.random), inner = world.openPool(worker.random);
  const Use of_outer = Use::shared(outer->users), of_inner = Use::shared(inner->users);
  if (!of_outer || !of_inner || !outer->user || !inner->user || outer == inner) return;
  const std::size_t slot = worker.anySlot();
  const Use use = Use::shared(world.slots[slot].lock);
  if (!use) return;
  const Stream stream = world.slots[slot].stream;
  const auto takeIn = [&](const PoolRef& pool) {
    mustBe(insistVerb([&] { return world.allocator.poolFor(stream); }) == pool->id,
           "a scope does not catch a request");
    const std::uint64_t bytes = worker.random.size();
    HeldRef held = world.take(pool, world.placeOf(slot), bytes,
                              [&] { return world.allocator.allocate(bytes, stream); });
    if (held) world.shelve(std::move(held));
  };
  const MemPoolScope one(*outer->user);
  takeIn(outer);
  {
    const MemPoolScope two(*inner->user);
    takeIn(inner);
  }
  takeIn(outer);
}

// A filter catches the stream for every thread, so nobody else may have it.
void onAFilteredStream(Worker& worker) {
  World& world = worker.world;
  const PoolRef pool = world.openPool(worker.random);
  const std::size_t slot = worker.anySlot();
  const Use users = Use::shared(pool->users), alone = Use::alone(world.slots[slot].lock);
  if (!users || !alone || !pool->user) return;
  const Stream stream = world.slots[slot].stream;
  try {
    world.pools->beginAllocateToPool(pool->id, PoolFilter::stream(stream));
  } catch (const PoolError& error) {  // a capture into it, or another such scope
    return mustBe(!world.config.alone || pool->capturing, error.what());
  }
  const std::uint64_t bytes = worker.random.size();
  HeldRef held = world.take(pool, world.placeOf(slot), bytes,
                            [&] { return world.allocator.allocate(bytes, stream); });
  if (held) world.shelve(std::move(held));
  world.pools->endAllocateToPool(pool->id);
  world.pools->releasePool(pool->id);
}

void lend(Worker& worker) {
  const PoolRef pool = worker.world.openPool(worker.random);
  const Use use = Use::shared(pool->users);
  if (!use || !pool->user || pool->location == Location::kHost) return;
  const bool on = worker.random.oneIn(2);
  if (on) pool->lent = true;
  worker.world.pools->setUseOnOOM(pool->id, on);
}

void empty(Worker& worker) {
  const PoolRef pool = worker.world.anyPool(worker.random);
  note("  pool {}", pool->number);
  try {
    worker.world.pools->emptyCache(pool->id);
  } catch (const PoolError&) {
    mustBe(pool->blocks == 0 || !worker.world.config.alone, "a pool with blocks is gone");
  }
}

// One that its user has let go of is there, draining, or gone; then it is made again.
void revive(Worker& worker) {
  World& world = worker.world;
  const PoolRef pool = world.anyPool(worker.random);
  const Use alone = Use::alone(pool->users);
  if (!alone || pool->user || pool->is_default) return;
  const std::size_t slot = worker.anySlot();
  const Use use = Use::shared(world.slots[slot].lock);
  if (!use) return;
  try {
    world.pools->createOrIncrefPool(pool->id);
  } catch (const PoolError&) {
    return;
  }
  note("  pool {} has a user again", pool->number);
  const std::uint64_t bytes = worker.random.size();
  HeldRef held = world.take(pool, world.placeOf(slot), bytes, [&] {
    return world.pools->allocate(bytes, world.slots[slot].stream, pool->id);
  });
  if (held) world.shelve(std::move(held));
  world.pools->releasePool(pool->id);
}

void look(Worker& worker) {
  World& world = worker.world;
  const PoolRef pool = world.anyPool(worker.random);
  const Use alone = Use::alone(pool->users);
  if (!alone || pool->is_default || pool->lent || pool->capturing || pool->outside > 0) return;
  checkPool(world, *pool);
}

constexpr Operation kPoolOperations[] = {
    {"renew a pool", 8, renew},
    {"end an old pool", 10, endOld},
    {"allocate in scopes", 12, inScopes},
    {"allocate on a filtered stream", 6, onAFilteredStream},
    {"lend, or not", 3, lend},
    {"empty a pool", 10, empty},
    {"revive a pool", 4, revive},
    {"look at a pool", 10, look},
    {"take a checkpoint", 10, takeCheckpoint},
    {"restore a checkpoint", 12, restoreCheckpoint},
};

}  // namespace

std::span<const Operation> poolOperations() { return kPoolOperations; }

}  // namespace cistern::storm
