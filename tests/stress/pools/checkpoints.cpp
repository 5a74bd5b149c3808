#include "tests/stress/pools/checkpoints.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace cistern::storm {
namespace {

// Pools whose blocks are all on the shelf. A pool that lent has blocks of others.
bool settled(const PoolModel& pool) {
  return !pool.is_default && !pool.lent && !pool.capturing && pool.outside == 0;
}

std::set<void*> blocksOf(const PoolModel& pool) {
  std::set<void*> blocks;
  for (const HeldRef& held : pool.shelf) blocks.insert(held->block);
  return blocks;
}

/// What setting back must do: which blocks stay, by the model.
struct Plan {
  std::vector<HeldRef> leaving;
  std::map<Address, std::size_t> coming;  ///< into the checkpoint's blocks
};

// A block that was freed since, and allocated in another way or for another stream, is not the
// same.
Plan planFor(World& world, PoolModel& pool, const Saved& saved) {
  Plan plan;
  std::map<Address, std::size_t> wanted;
  for (std::size_t i = 0; i < saved.checkpoint.blocks.size(); ++i) {
    wanted[saved.checkpoint.blocks[i].address] = i;
  }
  std::map<Address, LiveBlock> present;
  if (pool.blocks > 0) {
    for (const LiveBlock& block : world.pools->getCheckpointState(pool.id).blocks) {
      present[block.address] = block;
    }
  }
  std::vector<HeldRef> staying;
  for (HeldRef& held : pool.shelf) {
    const auto it = wanted.find(toAddress(held->block));
    const bool stays =
        it != wanted.end() && present.at(it->first) == saved.checkpoint.blocks[it->second];
    if (stays) wanted.erase(it);
    (stays ? staying : plan.leaving).push_back(std::move(held));
  }
  pool.shelf = std::move(staying);
  plan.coming = std::move(wanted);
  return plan;
}

void comeBack(World& world, const PoolRef& pool, const Saved& saved, const Plan& plan) {
  for (const auto& [address, index] : plan.coming) {
    auto held = std::make_unique<Held>();
    held->block = toPointer(address);
    held->bytes = saved.checkpoint.blocks[index].requested;
    held->pool = pool;
    held->home = held->writer = saved.homes[index];
    world.enter(*held);
    held->apart = !pool->chain.on;
    pool->shelf.push_back(std::move(held));
  }
}

void checkDelta(const CheckpointDelta& delta, const Plan& plan) {
  std::set<void*> freed(delta.freed.begin(), delta.freed.end());
  std::set<void*> made(delta.made.begin(), delta.made.end());
  bool right = freed.size() == plan.leaving.size() && made.size() == plan.coming.size();
  for (const HeldRef& held : plan.leaving) right &= freed.contains(held->block);
  for (const auto& [address, index] : plan.coming) right &= made.contains(toPointer(address));
  mustBe(right, "setting a pool back has freed or made other blocks than it had to");
}

}  // namespace

void checkPool(World& world, PoolModel& pool) {
  try {
    mustBe(world.pools->checkPoolLiveAllocations(pool.id, blocksOf(pool)),
           "a pool holds other blocks than the program has");
    const MemoryStats::Values values = world.pools->memoryStats(pool.id);
    mustBe(values[std::size_t(Stat::kAllocation)].current == pool.blocks &&
               values[std::size_t(Stat::kRequestedBytes)].current == pool.bytes,
           "a pool's statistics disagree with what the program has in it");
  } catch (const PoolError& error) {
    mustBe(pool.blocks == 0 && !pool.used, error.what());
  }
}

void takeCheckpoint(Worker& worker) {
  World& world = worker.world;
  const PoolRef pool = world.anyPool(worker.random);
  const Use alone = Use::alone(pool->users);
  if (!alone || !settled(*pool)) return;
  Saved saved;
  try {
    saved.checkpoint = world.pools->getCheckpointState(pool->id);
  } catch (const PoolError& error) {
    return mustBe(pool->blocks == 0 && !pool->used, error.what());
  }
  mustBe(saved.checkpoint.blocks.size() == pool->shelf.size(), "a checkpoint has other blocks");
  for (const LiveBlock& block : saved.checkpoint.blocks) {
    const auto it = std::find_if(pool->shelf.begin(), pool->shelf.end(), [&](const HeldRef& held) {
      return toAddress(held->block) == block.address;
    });
    mustBe(it != pool->shelf.end() && (*it)->bytes == block.requested,
           "a checkpoint has a block that the program has not");
    saved.homes.push_back((*it)->home);
  }
  note("  pool {} with {} blocks", pool->number, saved.homes.size());
  pool->saved = std::move(saved);
}

// What leaves must leave the model first: the memory may be another's before the verb returns.
void restoreCheckpoint(Worker& worker) {
  World& world = worker.world;
  const PoolRef pool = world.anyPool(worker.random);
  const Use alone = Use::alone(pool->users);
  if (!alone || !pool->saved || pool->lent || pool->outside > 0) return;
  if (pool->capturing) return;
  const Saved& saved = *pool->saved;
  Plan plan = planFor(world, *pool, saved);
  note("  pool {}: {} leave, {} come back", pool->number, plan.leaving.size(), plan.coming.size());
  for (const HeldRef& held : plan.leaving) {
    world.leave(*held);
    world.followUntold(*held);  // another block may come to lie there
  }
  bool restored = false;
  try {
    checkDelta(world.pools->setCheckpointPoolState(saved.checkpoint), plan);
    restored = true;
  } catch (const PoolError& error) {
    note("  {}", error.what());
  } catch (const DeviceFailure& failure) {
    world.expected(failure, "setCheckpointPoolState");
  }
  if (restored) {
    comeBack(world, pool, saved, plan);
    world.counts.restored += 1;
  } else {
    for (HeldRef& held : plan.leaving) {
      world.enter(*held);
      pool->shelf.push_back(std::move(held));
    }
    world.counts.not_restored += 1;
  }
  checkPool(world, *pool);
}

}  // namespace cistern::storm
