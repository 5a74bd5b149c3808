#include "tests/pools/pools_support.hpp"

namespace cistern::test {

TEST_CASE("a graph captures into a pool of its own and replays", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  {
    Graph graph(rig.pools);
    {
      GraphCapture capture(graph, s);
      void* a = rig.temporary(3 * kMiB, s);
      void* b = rig.temporary(3 * kMiB, s);
      CHECK(a == b);
      capture.end();
    }
    CHECK(rig.pools.getPoolUseCount(graph.pool()) == 1);
    graph.replay(s);
    graph.replay(s);
    rig.sim().synchronizeStream(s).orThrow();
    rig.pools.emptyCache(graph.pool());
    CHECK(rig.reservedBy(graph.pool()) > 0);
    rig.allocator.emptyCache();
    CHECK(rig.reservedBy(graph.pool()) > 0);
  }
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("an abandoned capture leaves nothing", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  const std::uint64_t before = takenOf(rig.sim());
  Graph graph(rig.pools);
  MempoolId_t id;
  {
    GraphCapture capture(graph, s);
    id = graph.pool();
    rig.temporary(30 * kMiB, s);
    rig.temporary(kKiB, s);
  }
  CHECK(!rig.known(id));
  CHECK(reservedOf(rig.allocator) == 0);
  CHECK(takenOf(rig.sim()) == before);
}

TEST_CASE("streams that join a capture allocate from its pool and reuse in the graph's order",
          "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), side = rig.stream(), other = rig.stream();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s);
  void* first = rig.temporary(64 * kMiB, s);
  rig.join(side, s);
  void* second = rig.temporary(64 * kMiB, side);
  CHECK(first == second);
  void* third = rig.temporary(64 * kMiB, side);
  CHECK(third == first);
  void* own = rig.temporary(64 * kMiB, s);  // does not follow side
  CHECK(own != first);
  rig.join(s, side);
  void* outside = rig.temporary(kMiB, other);
  (void)outside;
  void* again = rig.allocate(128 * kMiB, s);
  rig.touch(s, again);
  rig.allocator.free(again);
  capture.end();
  CHECK((!onPages(rig.allocator) || rig.reservedBy(graph.pool()) <= mib(192)));
  graph.replay(s);
  graph.replay(other);
}

TEST_CASE("scopes nest, and only their thread is caught", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool a(rig.pools), b(rig.pools);
  MemPoolScope outer(a);
  void* in_a = rig.allocate(kMiB, s);
  {
    MemPoolScope inner(b);
    void* in_b = rig.allocate(kMiB, s);
    CHECK(rig.pools.checkPoolLiveAllocations(b.id(), {in_b}));
    rig.allocator.free(in_b);
  }
  CHECK(a.useCount() == 2);
  CHECK(b.useCount() == 1);
  CHECK(rig.pools.checkPoolLiveAllocations(a.id(), {in_a}));
  rig.allocator.free(in_a);
}

}  // namespace cistern::test
