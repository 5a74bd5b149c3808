// Blocks outside captures: requests, work on them, frees.
#include <algorithm>
#include <utility>

#include "tests/stress/pools/pool_work.hpp"
#include "tests/stress/pools/pool_worker.hpp"
#include "tests/stress/training.hpp"

namespace cistern::storm {
namespace {

constexpr std::size_t kMostOnShelf = 24;
constexpr std::uint64_t kLeastBytes = 16;  ///< work writes to both ends of a block

bool crowded(PoolModel& pool) {
  const std::lock_guard lock(pool.shelf_mutex);
  return pool.shelf.size() >= kMostOnShelf;
}

void letGo(Worker& worker) {
  const PoolRef pool = worker.world.anyPool(worker.random);
  const Use use = Use::shared(pool->users);
  HeldRef held = use ? worker.world.unshelve(*pool, worker.random) : nullptr;
  if (held) worker.world.giveBack(std::move(held));
}

void take(Worker& worker) {
  World& world = worker.world;
  const PoolRef pool = world.openPool(worker.random);
  const std::size_t slot = worker.anySlot();
  const Use users = Use::shared(pool->users), use = Use::shared(world.slots[slot].lock);
  if (!users || !use || (!pool->is_default && !pool->user)) return;
  if (crowded(*pool)) return letGo(worker);
  const std::uint64_t bytes = worker.random.size();
  const Stream stream = world.slots[slot].stream;
  HeldRef held = world.take(pool, world.placeOf(slot), bytes, [&] {
    return pool->is_default ? world.allocator.allocate(bytes, stream)
                            : pool->user->allocate(bytes, stream);
  });
  if (held) world.shelve(std::move(held));
}

// Mostly on its own stream. What is freed right after has work queued still.
void work(Worker& worker) {
  World& world = worker.world;
  const PoolRef pool = world.anyPool(worker.random);
  const Use use = Use::shared(pool->users);
  HeldRef held = use ? world.unshelve(*pool, worker.random) : nullptr;
  if (!held) return;
  const std::size_t slot = worker.random.oneIn(2) ? worker.anySlot() : held->home.slot;
  const bool writes = held->stamp == 0 || worker.random.oneIn(2);
  (void)touch(world, *held, slot, writes, worker.random);
  worker.random.oneIn(3) ? world.giveBack(std::move(held)) : world.shelve(std::move(held));
}

// One that is freed at once, again and again, as programs do that have no pool of their own.
void pairs(Worker& worker) {
  World& world = worker.world;
  const PoolRef pool = world.openPool(worker.random);
  const std::size_t slot = worker.anySlot();
  const Use users = Use::shared(pool->users), use = Use::shared(world.slots[slot].lock);
  if (!users || !use || (!pool->is_default && !pool->user)) return;
  const Stream stream = world.slots[slot].stream;
  const std::uint64_t bytes = worker.random.size();
  for (std::uint64_t i = worker.random.below(8); i > 0; --i) {
    HeldRef held = world.take(pool, world.placeOf(slot), bytes, [&] {
      return pool->is_default ? world.allocator.allocate(bytes, stream)
                              : pool->user->allocate(bytes, stream);
    });
    if (!held) return;
    (void)touch(world, *held, slot, true, worker.random);
    world.giveBack(std::move(held));
  }
}

HeldRef takeOn(World& world, const PoolRef& pool, std::size_t slot, std::uint64_t bytes) {
  const Use use = Use::shared(world.slots[slot].lock);
  if (!use) return nullptr;
  const Stream stream = world.slots[slot].stream;
  return world.take(pool, world.placeOf(slot), bytes, [&] {
    return pool->is_default ? world.allocator.allocate(bytes, stream)
                            : pool->user->allocate(bytes, stream);
  });
}

// Many neighbours that one stream has written are freed with that work queued, and are one free
// block then; another stream takes what it can get of them. Some are written on a third stream too:
// they come back later than younger ones.
void handOver(Worker& worker) {
  World& world = worker.world;
  const PoolRef pool = world.openPool(worker.random);
  const Use users = Use::shared(pool->users);
  if (!users || (!pool->is_default && !pool->user)) return;
  const std::size_t from = worker.anySlot(), to = worker.anySlot();
  std::vector<HeldRef> blocks;
  for (std::uint64_t i = 6 + worker.random.below(10); i > 0; --i) {
    HeldRef held = takeOn(world, pool, from, (1 + worker.random.below(3)) * 2 * kMiB);
    if (held) blocks.push_back(std::move(held));
  }
  while (!blocks.empty()) {
    std::swap(worker.random.oneOf(blocks), blocks.back());
    HeldRef held = std::move(blocks.back());
    blocks.pop_back();
    const std::size_t on = worker.random.oneIn(4) ? worker.anySlot() : from;
    if (!worker.random.oneIn(4)) (void)touch(world, *held, on, true, worker.random);
    world.giveBack(std::move(held));
  }
  for (std::uint64_t i = 1 + worker.random.below(3); i > 0; --i) {
    HeldRef held = takeOn(world, pool, to, (1 + worker.random.below(8)) * 2 * kMiB);
    if (!held) return;
    (void)touch(world, *held, to, true, worker.random);
    world.giveBack(std::move(held));
  }
}

// Whole steps on one stream, whose requests repeat themselves, while other threads do what they do.
void train(Worker& worker) {
  World& world = worker.world;
  Random& random = worker.random;
  const PoolRef pool = world.openPool(random);
  const std::size_t slot = worker.anySlot();
  const Use users = Use::shared(pool->users);
  if (!users || (!pool->is_default && !pool->user)) return;
  const auto take = [&](std::uint64_t bytes) {
    HeldRef held = takeOn(world, pool, slot, std::max(bytes, kLeastBytes));
    if (held && random.oneIn(2)) (void)touch(world, *held, slot, true, random);
    return held;
  };
  stress::train(
      {[&](std::uint64_t most) { return random.below(most); }, [&] { return random.size(); }}, take,
      [&](HeldRef held) { world.giveBack(std::move(held)); });
  world.counts.trainings += 1;
}

constexpr Operation kBlockOperations[] = {
    {"allocate", 200, take},
    {"free", 130, letGo},
    {"work on a block", 200, work},
    {"allocate and free at once", 30, pairs},
    {"hand memory over", 12, handOver},
    {"train for a few steps", 6, train},
};

}  // namespace

std::span<const Operation> blockOperations() { return kBlockOperations; }

}  // namespace cistern::storm
