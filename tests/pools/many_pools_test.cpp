// Pools come and go by the thousand, and leave nothing behind.
#include "tests/pools/unwind_support.hpp"

namespace cistern::test {
namespace {

/// What pools could leave behind.
struct Left {
  std::uint64_t host_bytes, ranges;
};

Left leftOf(PoolRig& rig) {
  return {rig.allocator.memoryStats().host_bytes,
          countOf(rig.sim(), Call::kReserve) - countOf(rig.sim(), Call::kFreeReservation)};
}

void capture(PoolRig& rig, Stream stream, MempoolId_t id, std::size_t i) {
  Graph graph(rig.pools);
  GraphCapture capture(graph, stream, id);
  rig.temporary((1 + i % 20) * kMiB, stream);
  rig.temporary(kKiB, stream);
  capture.end();
  graph.replay(stream);
}

// A pool that two streams use, and every other one a graph.
void usePool(PoolRig& rig, const Streams& streams, std::size_t i) {
  MemPool pool(rig.pools, {nullptr, true, i % 4 == 1, i % 8 == 3});
  {
    const MemPoolScope scope(pool);
    rig.temporary((1 + i % 30) * kMiB, streams[i % 2]);
    rig.temporary(1 + i * 97 % (64 * kKiB), streams[1]);
  }
  if (i % 2 == 0) return;
  rig.sim().synchronizeDevice().orThrow();
  capture(rig, streams[0], pool.id(), i);
}

constexpr std::size_t kPools = kSlowBuild ? 200 : 1'000;

void checkNothingIsLeft(PoolRig& rig) {
  rig.sim().synchronizeDevice().orThrow();
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
  CHECK(takenOf(rig.sim()) == 0);
}

}  // namespace

TEST_CASE("a thousand pools, one after another, leave no heaps, ranges or host memory", "[pools]") {
  PoolRig rig;
  const Streams streams(rig.allocator, 2);
  Left early{};
  for (std::size_t i = 0; i < kPools; ++i) {
    usePool(rig, streams, i);
    if (i == 60) early = leftOf(rig);  // every size has been asked for
  }
  const Left late = leftOf(rig);
  CHECK(late.host_bytes <= early.host_bytes + early.host_bytes / 8);
  CHECK(late.ranges <= early.ranges);
  checkNothingIsLeft(rig);
}

// Their memory stays cached until someone needs it: the next graph, before it grows.
TEST_CASE("a thousand graphs with pools of their own use each other's memory", "[pools]") {
  PoolRig rig;
  const Streams streams(rig.allocator, 2);
  for (std::size_t i = 0; i < kPools; ++i) {
    capture(rig, streams[i % 2], {}, i);
    rig.sim().synchronizeDevice().orThrow();
  }
  const MemoryStats stats = rig.allocator.memoryStats();
  CHECK(stats[Stat::kReservedBytes].peak <= mib(150));
  CHECK(stats.host_bytes <= kMiB);
  CHECK(leftOf(rig).ranges <= 64);
  checkNothingIsLeft(rig);
}

}  // namespace cistern::test
