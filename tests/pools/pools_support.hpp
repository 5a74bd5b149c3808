// What the tests of pools and captures share.
#pragma once

#include <string>

#include "cistern/graph.hpp"
#include "cistern/pool.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {

/// What is queued on `later` from now on comes after what is queued on `earlier`.
inline void order(Device& device, Stream later, Stream earlier) {
  const Event event = device.createEvent().orThrow();
  device.recordEvent(event, earlier).orThrow();
  device.waitEvent(later, event).orThrow();
  device.destroyEvent(event).orThrow();
}

/// What the verb says when it refuses with that exception; "" when it does not.
template <class Refusal, class Verb>
std::string refusalOf(Verb verb) {
  try {
    verb();
  } catch (const Refusal& refusal) {
    return refusal.what();
  }
  return "";
}
/// Whether the verb is refused with a PoolError that names the pool and says `why`.
template <class Verb>
bool refusedFor(MempoolId_t id, const std::string& why, Verb verb) {
  const std::string text = refusalOf<PoolError>(verb);
  UNSCOPED_INFO("refusal: " << text);
  return text.find(poolName(id)) != std::string::npos && text.find(why) != std::string::npos;
}

/// A simulated device, an allocator on it, and its pools.
struct PoolRig : SimRig {
  explicit PoolRig(std::string_view conf = "", sim::SimConfig config = simOf(kGiB))
      : SimRig(conf, std::move(config)), pools(allocator) {}

  void* allocate(std::size_t bytes, Stream stream) { return allocator.allocate(bytes, stream); }
  void free(void* block) { allocator.free(block); }
  /// Allocates and writes.
  void* written(std::size_t bytes, Stream stream) {
    void* block = allocate(bytes, stream);
    touch(stream, block);
    return block;
  }
  /// Allocates, writes and frees.
  void* temporary(std::size_t bytes, Stream stream) {
    void* block = written(bytes, stream);
    allocator.free(block);
    return block;
  }
  std::int64_t reservedBy(MempoolId_t id) {
    return pools.memoryStats(id)[std::size_t(Stat::kReservedBytes)].current;
  }
  bool known(MempoolId_t id) {
    return refusalOf<PoolError>([&] { (void)pools.getPoolUseCount(id); }).empty();
  }
  bool holds(MempoolId_t id, const std::set<void*>& blocks) {
    return pools.checkPoolLiveAllocations(id, blocks);
  }
  bool outOfMemory(std::size_t bytes, Stream stream) {
    return !refusalOf<OutOfMemory>([&] { free(allocate(bytes, stream)); }).empty();
  }
  /// What is queued on `later` from now on comes after what is queued on `earlier`.
  void join(Stream later, Stream earlier) { order(sim(), later, earlier); }
  void finish() { sim().synchronizeDevice().orThrow(); }

  Pools pools;
};

}  // namespace cistern::test
