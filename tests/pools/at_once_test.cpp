// Threads that capture, scope, name pools and trim them, all at once.
#include <atomic>
#include <memory>
#include <thread>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

constexpr int kRepeats = 60;

/// Captures into a pool of the graph's own, replays, and resets with the replay still queued.
void captureAgainAndAgain(PoolRig& rig, std::atomic<int>& wrong) {
  const Stream s = rig.stream();
  for (int round = 0; round < kRepeats; ++round) {
    Graph graph(rig.pools);
    GraphCapture capture(graph, s, {}, CaptureMode::kThreadLocal);
    void* block = rig.written(std::size_t(1 + round % 7) * 3 * kMiB, s);
    rig.temporary(kKiB, s);
    if (!rig.holds(graph.pool(), {block})) ++wrong;
    rig.free(block);
    if (round % 5 == 4) continue;  // abandoned
    capture.end();
    graph.replay(s);
  }
}

void allocateInScopes(PoolRig& rig, MemPool& pool, std::atomic<int>& wrong) {
  const Stream s = rig.stream();
  for (int round = 0; round < kRepeats; ++round) {
    void* outside = rig.written(2 * kMiB, s);
    {
      const MemPoolScope scope(pool);
      if (rig.allocator.poolFor(s) != pool.id()) ++wrong;
      rig.temporary(std::size_t(1 + round % 5) * kMiB, s);
    }
    if (rig.allocator.poolFor(s) != MempoolId_t{}) ++wrong;
    rig.free(outside);
    void* named = pool.allocate(5 * kMiB, s);
    rig.touch(s, named);
    rig.free(named);
  }
}

void makeAndTrimPools(PoolRig& rig, MemPool& shared) {
  const Stream s = rig.stream();
  for (int round = 0; round < kRepeats; ++round) {
    MemPool own(rig.pools, {nullptr, true, round % 2 == 0, round % 3 == 0});
    void* block = own.allocate(10 * kMiB, s);
    rig.touch(s, block);
    shared.emptyCache();
    if (round % 4 == 0) rig.allocator.emptyCache();
    rig.free(block);
    (void)rig.pools.memoryStats(shared.id());
    (void)rig.pools.getCheckpointState(shared.id());
  }
}

}  // namespace

TEST_CASE("threads capture, scope, name and trim pools at once", "[pools][pages]") {
  PoolRig rig("limit:512M");
  std::atomic<int> wrong{0};
  {
    MemPool pool(rig.pools);
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] { captureAgainAndAgain(rig, wrong); });
      threads.emplace_back([&] { allocateInScopes(rig, pool, wrong); });
    }
    threads.emplace_back([&] { makeAndTrimPools(rig, pool); });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == 0);
    CHECK(pool.useCount() == 1);
    CHECK(rig.holds(pool.id(), {}));
  }
  rig.finish();
  rig.pools.createOrIncrefPool(graphPoolHandle());  // tidies
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
  CHECK(takenOf(rig.sim()) == 0);
}

}  // namespace cistern::test
