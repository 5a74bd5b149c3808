#include "tests/stress/pools/captured_graph.hpp"

#include <algorithm>
#include <utility>

#include "tests/stress/pools/pool_work.hpp"

namespace cistern::storm {
Outside::Outside(World& in, HeldRef block) : world(in), held(std::move(block)) {
  held->pool->outside += 1;
  ready = insist([&] { return world.device.createEvent(); }).orThrow();
}

Outside::~Outside() {
  mustWork(insist([&] { return world.device.destroyEvent(ready); }));
  const PoolRef pool = held->pool;
  world.giveBack(std::move(held));
  pool->outside -= 1;
}

// What it holds from outside is freed after it: its replays may still be queued, and each has been
// recorded.
CapturedGraph::~CapturedGraph() {
  Device& device = world.device;
  for (const Body& body : bodies) {
    mustWork(insist([&] { return device.destroyGraphExec(body.exec); }));
    mustWork(insist([&] { return device.destroyGraph(body.graph); }));
  }
  kept.clear();
  graph->reset();
  mustBe(graph->pool() == MempoolId_t{}, "a graph that was reset has a pool");
  outside.clear();
  for (const PoolRef& pool : pools) {
    const std::lock_guard lock(pool->chain.mutex);
    leaveChain(pool->chain);
  }
}

std::vector<std::unique_lock<std::mutex>> CapturedGraph::lockChains() {
  std::vector<PoolModel*> all;
  for (const PoolRef& pool : pools) all.push_back(pool.get());
  std::sort(all.begin(), all.end(),
            [](const PoolModel* a, const PoolModel* b) { return a->number < b->number; });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::vector<std::unique_lock<std::mutex>> locks;
  for (PoolModel* pool : all) locks.emplace_back(pool->chain.mutex);
  return locks;
}

void CapturedGraph::replay(std::size_t slot, Random& random) {
  const Use here = Use::shared(world.slots[slot].lock);
  if (!here) return;
  const Stream stream = world.slots[slot].stream;
  const auto locks = lockChains();
  for (const PoolRef& pool : pools) follow(world, pool->chain, stream);
  for (const auto& block : outside) {
    mustWork(insist([&] { return world.device.waitEvent(stream, block->ready); }));
  }
  note("  replay a graph of pool {} on slot {}", pools.front()->number, slot);
  try {
    graph->replay(stream);
  } catch (const DeviceFailure& failure) {
    return world.expected(failure, "replay");
  }
  launchBodies(stream, random);
  for (const auto& block : outside) {
    insistVerb([&] { world.allocator.recordStream(block->held->block, stream); });
  }
  for (const PoolRef& pool : pools) {
    goOnAfter(world, pool->chain, stream);
    ++pool->chain.replays;
  }
  world.counts.replays += 1;
}

// Each on another stream where one can be had: nothing orders them, but for what came before the
// replay, and all of them before what comes after it.
void CapturedGraph::launchBodies(Stream stream, Random& random) {
  Device& device = world.device;
  for (const Body& body : bodies) {
    Slot& slot = world.slots[random.below(world.slots.size())];
    const Use use = Use::shared(slot.lock);
    const Stream on = use ? slot.stream : stream;
    for (const PoolRef& pool : pools) follow(world, pool->chain, on);
    mustWork(insist([&] { return device.launchGraph(body.exec, on); }));
    if (on != stream) mustWork(order(device, on, stream));
  }
}

}  // namespace cistern::storm
