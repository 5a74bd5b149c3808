// Verbs that a graph's state does not allow, and captures that cannot begin: nothing is changed.
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

template <class Verb>
bool refusedWhile(const std::string& state, Verb verb) {
  const std::string text = refusalOf<GraphError>(verb);
  UNSCOPED_INFO("refusal: " << text);
  return text.find("the graph is " + state) != std::string::npos;
}

}  // namespace

TEST_CASE("an idle graph can only begin", "[pools]") {
  PoolRig rig;
  Graph graph(rig.pools);
  const Stream s = rig.stream();
  CHECK(refusedWhile("idle", [&] { graph.replay(s); }));
  CHECK(refusedWhile("idle", [&] { graph.captureEnd(); }));
  CHECK(refusedWhile("idle", [&] { graph.instantiate(); }));
  CHECK(refusedWhile("idle", [&] { graph.includeStream(s); }));
  CHECK(refusedWhile("idle", [&] { graph.debugDump("/nowhere/at/all"); }));
  graph.abandon();
  graph.reset();
  CHECK(graph.pool() == MempoolId_t{});
}

TEST_CASE("a graph that captures can only end", "[pools]") {
  PoolRig rig;
  Graph graph(rig.pools);
  const Stream s = rig.stream(), other = rig.stream();
  graph.captureBegin(s);
  const MempoolId_t id = graph.pool();
  CHECK(refusedWhile("capturing", [&] { graph.captureBegin(other); }));
  CHECK(refusedWhile("capturing", [&] { graph.replay(s); }));
  CHECK(refusedWhile("capturing", [&] { graph.instantiate(); }));
  graph.reset();
  CHECK(graph.capturing());
  CHECK(graph.pool() == id);
  CHECK(rig.pools.getPoolUseCount(id) == 1);
  rig.temporary(kMiB, s);
  graph.captureEnd();
  graph.replay(s);
}

TEST_CASE("a captured graph captures again only after reset", "[pools]") {
  PoolRig rig;
  Graph graph(rig.pools);
  const Stream s = rig.stream();
  graph.captureBegin(s);
  rig.temporary(kMiB, s);
  graph.captureEnd();
  const MempoolId_t id = graph.pool();
  CHECK(refusedWhile("captured", [&] { graph.captureBegin(s); }));
  CHECK(refusedWhile("captured", [&] { graph.captureEnd(); }));
  CHECK(refusedWhile("captured", [&] { graph.includeStream(s); }));
  graph.abandon();
  CHECK(graph.pool() == id);
  graph.replay(s);
  graph.reset();
  graph.captureBegin(s);
  CHECK(graph.pool() != id);
  rig.temporary(kMiB, s);
  graph.captureEnd();
  graph.replay(s);
}

TEST_CASE("a capture of the default stream is an error that leaves the graph idle and no pool",
          "[pools]") {
  PoolRig rig;
  Graph graph(rig.pools);
  const MempoolId_t last = graphPoolHandle(false), named = graphPoolHandle();
  CHECK_THROWS_AS(graph.captureBegin(Stream{}), DeviceFailure);
  CHECK_THROWS_AS(graph.captureBegin(Stream{}, named), DeviceFailure);
  CHECK(!graph.capturing());
  CHECK(graph.pool() == MempoolId_t{});
  CHECK(!rig.known({last.uuid + 1, 0}));
  CHECK(!rig.known(named));
  CHECK(rig.allocator.poolFor(Stream{}) == MempoolId_t{});
  CHECK(refusedWhile("idle", [&] { graph.replay(rig.stream()); }));
}

TEST_CASE("a capture on a stream that captures already is an error that leaves that one alone",
          "[pools]") {
  PoolRig rig;
  Graph first(rig.pools), second(rig.pools);
  const Stream s = rig.stream();
  first.captureBegin(s);
  CHECK_THROWS_AS(second.captureBegin(s), DeviceFailure);
  CHECK(second.pool() == MempoolId_t{});
  rig.temporary(kMiB, s);
  CHECK(rig.reservedBy(first.pool()) > 0);
  first.captureEnd();
  first.replay(s);
}

TEST_CASE("one capture or scope by streams at a time into a pool", "[pools]") {
  PoolRig rig;
  MemPool pool(rig.pools);
  const Stream s = rig.stream(), other = rig.stream();
  Graph first(rig.pools), second(rig.pools);
  const auto capture = [&] { second.captureBegin(other, pool.id()); };
  const auto scope = [&] { rig.pools.beginAllocateToPool(pool.id(), PoolFilter::stream(other)); };
  first.captureBegin(s, pool.id());
  CHECK(refusedFor(pool.id(), "already", capture));
  CHECK(refusedFor(pool.id(), "already", scope));
  CHECK(refusedFor(pool.id(), "scope", [&] { rig.pools.endAllocateToPool(pool.id()); }));
  CHECK(pool.useCount() == 2);
  CHECK(!second.capturing());
  CHECK(rig.sim().captureInfo(other).orThrow().status == CaptureStatus::kNone);
  CHECK(rig.allocator.poolFor(s) == pool.id());
  first.captureEnd();
  {
    const MemPoolScope by_streams(pool, PoolFilter::stream(s));
    CHECK(refusedFor(pool.id(), "already", capture));
    CHECK(pool.useCount() == 3);
  }
  second.captureBegin(other, pool.id());
  second.captureEnd();
  CHECK(pool.useCount() == 3);
}

TEST_CASE("a capture in a thread's own scope of the pool is part of both", "[pools]") {
  PoolRig rig;
  MemPool pool(rig.pools);
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  {
    const MemPoolScope scope(pool);
    GraphCapture capture(graph, s, pool.id());
    rig.temporary(kMiB, s);
    capture.end();
    CHECK(pool.useCount() == 3);
    CHECK(rig.allocator.poolFor(s) == pool.id());
  }
  CHECK(pool.useCount() == 2);
  graph.replay(s);
}

TEST_CASE("the pool of a capture is not released under it", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  graph.captureBegin(s);
  const MempoolId_t id = graph.pool();
  CHECK(refusedFor(id, "let go", [&] { rig.pools.releasePool(id); }));
  rig.temporary(kMiB, s);
  graph.captureEnd();
  CHECK(rig.pools.getPoolUseCount(id) == 1);
}

}  // namespace cistern::test
