// A graph that is launched into another's capture is part of it, memory and all.
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

void captureTemporary(PoolRig& rig, Graph& graph, Stream stream, std::size_t bytes) {
  GraphCapture capture(graph, stream);
  rig.temporary(bytes, stream);
  capture.end();
}

}  // namespace

TEST_CASE("a graph inside another keeps its memory in place after its own reset", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  Graph outer(rig.pools);
  MempoolId_t inner_pool;
  {
    Graph inner(rig.pools);
    captureTemporary(rig, inner, s, 64 * kMiB);
    inner_pool = inner.pool();
    GraphCapture capture(outer, s);
    rig.temporary(kMiB, s);
    inner.replay(s);
    capture.end();
    inner.reset();
  }
  rig.allocator.emptyCache();
  rig.pools.emptyCache(inner_pool);
  CHECK(rig.reservedBy(inner_pool) >= mib(64));
  CHECK(rig.pools.getPoolUseCount(inner_pool) == 1);
  outer.replay(s);
  rig.finish();
  outer.reset();
  rig.allocator.emptyCache();
  rig.pools.createOrIncrefPool(graphPoolHandle());  // tidies
  CHECK(!rig.known(inner_pool));
}

TEST_CASE("a graph launched into a capture that is abandoned is its own again", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  Graph inner(rig.pools), outer(rig.pools);
  captureTemporary(rig, inner, s, 64 * kMiB);
  const MempoolId_t pool = inner.pool();
  {
    const GraphCapture capture(outer, s);
    inner.replay(s);
  }
  CHECK(rig.pools.getPoolUseCount(pool) == 1);
  inner.replay(s);
  rig.finish();
  inner.reset();
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("graphs inside graphs inside a graph all stay in place", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  Graph outermost(rig.pools);
  {
    Graph inner(rig.pools), middle(rig.pools);
    captureTemporary(rig, inner, s, 64 * kMiB);
    {
      GraphCapture capture(middle, s);
      inner.replay(s);
      capture.end();
    }
    GraphCapture capture(outermost, s);
    middle.replay(s);
    capture.end();
  }
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) >= mib(64));
  outermost.replay(s);
  rig.finish();
  outermost.reset();
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("the parts of a capture on a stream that it includes are kept, too", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), side = rig.stream();
  Graph outer(rig.pools);
  MempoolId_t inner_pool;
  {
    Graph inner(rig.pools);
    captureTemporary(rig, inner, s, 64 * kMiB);
    inner_pool = inner.pool();
    GraphCapture capture(outer, s);
    rig.temporary(kMiB, s);
    rig.join(side, s);
    inner.replay(side);
    rig.join(s, side);
    capture.end();
  }
  rig.allocator.emptyCache();
  CHECK(rig.pools.getPoolUseCount(inner_pool) == 1);
  outer.replay(s);
}

}  // namespace cistern::test
