// How a round ends: everything goes back to the device, and it is as it was.
#include <utility>

#include "tests/stress/pools/captured_graph.hpp"
#include "tests/stress/pools/pool_world.hpp"

namespace cistern::storm {

void World::finish() {
  note("the end of the round{}{}: {}", config.faults ? ", faults" : "",
       config.abrupt_end ? ", abrupt" : "", config.options.conf());
  over_ = true;
  if (!config.abrupt_end) device.faults().clear();
  checkStatistics();
  checkRaces();
  allocator.audit();
  resetGraphs();
  if (config.abrupt_end) endPools();
  device.faults().clear();
  sharing.finish(*this);
  emptyShelves();
  if (!config.abrupt_end) endPools();
  pinned.finish();
  checkEnd();
  counts.rounds += 1;
}

void World::resetGraphs() {
  note("  graphs are reset");
  std::vector<std::unique_ptr<CapturedGraph>> graphs;
  {
    const std::lock_guard lock(graphs_mutex_);
    graphs.swap(graphs_);
  }
  graphs.clear();
}

void World::emptyShelves() {
  note("  blocks are freed");
  for (const PoolRef& pool : allPools()) {
    std::vector<HeldRef> shelf;
    {
      const std::lock_guard lock(pool->shelf_mutex);
      shelf.swap(pool->shelf);
    }
    for (HeldRef& held : shelf) giveBack(std::move(held));
  }
}

void World::endPools() {
  note("  the pools end");
  for (const PoolRef& pool : allPools()) pool->user = nullptr;
  pools = nullptr;
}

// What was freed while a capture had its stream has no event until the allocator looks at it again,
// which it need not have done since. The first emptyCache does, and, as it never waits, may leave
// such a block; its event is among what is waited for then, and the second leaves nothing.
void World::checkEnd() {
  note("  everything must be back");
  if (memory_hook_.number != 0) allocator.detach(memory_hook_);
  device.foreignUse(0);
  allocator.emptyCache();
  device.synchronizeDevice().orThrow();
  allocator.emptyCache();
  allocator.audit();
  const MemoryStats stats = allocator.memoryStats();
  const auto none = [&](Stat stat) {
    const std::int64_t left = stats[stat].current;
    if (left != 0) violation(fmt::format("at the end of a round, {} is {}", statName(stat), left));
  };
  none(Stat::kAllocation);
  none(Stat::kRequestedBytes);
  // Memory of replays that the device refused to wait for stays until the allocator goes.
  const bool returned = !config.abrupt_end || !config.faults;
  if (returned) {
    for (std::size_t stat = 0; stat < kStatCount; ++stat) none(Stat(stat));
    checkReturned();
  }
  checkRaces();
  mustBe(sharing.other.sim().races().empty(), "memory of an import is gone");
  if (returned) sharing.checkGone(*this);
  device.audit();
}

void World::checkReturned() {
  const MemoryInfo info = device.memoryInfo().orThrow();
  mustBe(info.free_bytes == info.total_bytes, "memory of the device has not come back");
  mustBe(device.hostPageBytesLeft() == config.device.host_page_capacity,
         "memory of the host has not come back");
}

}  // namespace cistern::storm
