// Who keeps a pool, and what outlives it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {

TEST_CASE("what a gone pool or stream has left is reported without a stream's number", "[pools]") {
  PoolRig rig;
  std::vector<Misuse> reports;
  rig.allocator.setMisuseHook([&](const Misuse& misuse) { reports.push_back(misuse); });
  const Stream s = rig.stream(), forgotten = rig.stream();
  std::optional<MemPool> pool(std::in_place, rig.pools);
  void* const of_pool = pool->allocate(24 * kMiB, s);
  void* const of_stream = rig.allocate(24 * kMiB, forgotten);
  rig.free(of_pool);
  rig.free(of_stream);
  pool.reset();
  rig.allocator.forgetStream(forgotten);
  rig.allocator.emptyCache();
  rig.free(of_pool);
  rig.free(of_stream);
  for (int i = 0; i < 100; ++i) {  // heaps without memory are parked when others begin
    rig.free(rig.allocate(kMiB, rig.stream()));
    rig.free(MemPool(rig.pools).allocate(kMiB, s));
  }
  for (void* block : {of_pool, of_stream}) rig.free(block);
  REQUIRE(reports.size() == 4);
  for (const Misuse& misuse : reports) {
    CHECK(misuse.text().find("0xffffffffffffffff") == std::string::npos);
    CHECK(misuse.stream != Stream{UINTPTR_MAX});
    CHECK((misuse.text().find("its pool or its stream is gone") != std::string::npos) ==
          misuse.owner_gone);
  }
  if (onPages(rig.allocator)) CHECK(reports.front().owner_gone);
  for (const SnapshotSegment& segment : rig.allocator.snapshot().segments) {
    CHECK(segment.stream != Stream{UINTPTR_MAX});
    for (const SnapshotBlock& block : segment.blocks) CHECK(block.stream != Stream{UINTPTR_MAX});
  }
}

TEST_CASE("a graph that shares a MemPool counts as a user: 1, 2, 1", "[pools]") {
  PoolRig rig;
  MemPool pool(rig.pools);
  const Stream s = rig.stream();
  CHECK(pool.useCount() == 1);
  {
    Graph graph(rig.pools);
    {
      GraphCapture capture(graph, s, pool.id());
      CHECK(pool.useCount() == 2);
      rig.temporary(kMiB, s);
      capture.end();
    }
    CHECK(pool.useCount() == 2);
    graph.replay(s);
    rig.finish();
  }
  rig.allocator.emptyCache();
  rig.pools.emptyCache(pool.id());
  CHECK(pool.useCount() == 1);
}

TEST_CASE("a graph keeps the pool that its MemPool has let go of", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  std::optional<MemPool> pool(std::in_place, rig.pools);
  const MempoolId_t id = pool->id();
  graph.captureBegin(s, id);
  rig.temporary(20 * kMiB, s);
  graph.captureEnd();
  pool.reset();
  CHECK(rig.pools.getPoolUseCount(id) == 1);
  CHECK(rig.reservedBy(id) >= mib(20));
  graph.replay(s);
  rig.finish();
  graph.reset();
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("blocks outlive their pool, MemPool and graph, and are freed into a draining pool",
          "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  void *by_scope = nullptr, *by_capture = nullptr;
  MempoolId_t id;
  {
    MemPool pool(rig.pools);
    id = pool.id();
    Graph graph(rig.pools);
    {
      const MemPoolScope scope(pool);
      by_scope = rig.written(5 * kMiB, s);
    }
    GraphCapture capture(graph, s, id);
    by_capture = rig.written(7 * kMiB, s);
    capture.end();
    graph.replay(s);
    rig.finish();
  }
  CHECK(rig.pools.getPoolUseCount(id) == 0);
  CHECK(rig.holds(id, {by_scope, by_capture}));
  rig.allocator.emptyCache();
  rig.touch(s, by_scope);
  rig.touch(s, by_capture);
  rig.free(by_scope);
  CHECK(rig.holds(id, {by_capture}));
  rig.free(by_capture);
  rig.finish();
  CHECK(rig.known(id));
  rig.pools.emptyCache(id);
  CHECK(!rig.known(id));
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("the id of a pool that is gone may be used again", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  const MempoolId_t id = graphPoolHandle();
  for (int round = 0; round < 3; ++round) {
    rig.pools.createOrIncrefPool(id, {nullptr, round == 1});
    void* block = rig.pools.allocate(3 * kMiB, s, id);
    CHECK(rig.holds(id, {block}));
    CHECK((rig.allocator.getBaseAllocation(block).bytes == 4 * kMiB) == (round == 1));
    rig.touch(s, block);
    rig.pools.releasePool(id);
    rig.free(block);
    rig.finish();
    rig.pools.emptyCache(id);
    CHECK(!rig.known(id));
  }
}

TEST_CASE("what a draining pool has free serves whoever needs it", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), other = rig.stream();
  MemPool taker(rig.pools);
  const MempoolId_t id = graphPoolHandle();
  rig.pools.createOrIncrefPool(id);
  void* kept = rig.pools.allocate(2 * kMiB, s, id);
  void* large = rig.pools.allocate(900 * kMiB, s, id);
  rig.pools.releasePool(id);
  rig.free(large);
  void* block = rig.allocate(500 * kMiB, other);
  void* private_block = taker.allocate(300 * kMiB, other);
  rig.touch(other, block);
  rig.touch(other, private_block);
  rig.free(block);
  rig.free(private_block);
  rig.touch(s, kept);
  rig.free(kept);
}

TEST_CASE("the observer of released pools hears of each once, when its last user lets go",
          "[pools]") {
  PoolRig rig;
  std::vector<MempoolId_t> released;
  rig.allocator.attachPoolReleasedObserver([&](MempoolId_t id) { released.push_back(id); });
  const MempoolId_t id = graphPoolHandle();
  rig.pools.createOrIncrefPool(id);
  rig.pools.createOrIncrefPool(id);
  rig.pools.releasePool(id);
  CHECK(released.empty());
  rig.pools.releasePool(id);
  CHECK(released == std::vector<MempoolId_t>{id});
}

}  // namespace cistern::test
