// What the tests of pools and captures share.
#pragma once

#include "pools/graph.hpp"
#include "pools/mem_pool.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {

/// A simulated device, an allocator on it, and its pools.
struct PoolRig : SimRig {
  explicit PoolRig(std::string_view conf = "", sim::SimConfig config = simOf(kGiB))
      : SimRig(conf, std::move(config)), pools(allocator) {}

  void* allocate(std::size_t bytes, Stream stream) { return allocator.allocate(bytes, stream); }
  /// Allocates, writes and frees.
  void* temporary(std::size_t bytes, Stream stream) {
    void* block = allocate(bytes, stream);
    touch(stream, block);
    allocator.free(block);
    return block;
  }
  std::int64_t reservedBy(MempoolId_t id) {
    return pools.memoryStats(id)[std::size_t(Stat::kReservedBytes)].current;
  }
  bool known(MempoolId_t id) {
    try {
      (void)pools.getPoolUseCount(id);
      return true;
    } catch (const PoolError&) {
      return false;
    }
  }
  /// What is queued on `later` from now on comes after what is queued on `earlier`.
  void join(Stream later, Stream earlier) {
    const Event event = sim().createEvent().orThrow();
    sim().recordEvent(event, earlier).orThrow();
    sim().waitEvent(later, event).orThrow();
    sim().destroyEvent(event).orThrow();
  }

  Pools pools;
};

}  // namespace cistern::test
