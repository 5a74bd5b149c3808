// What a capture catches: what is allocated on streams that have joined it, by any thread.
#include <thread>

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
    rig.finish();
    rig.pools.emptyCache(graph.pool());
    CHECK(rig.reservedBy(graph.pool()) > 0);
    rig.allocator.emptyCache();
    CHECK(rig.reservedBy(graph.pool()) > 0);
  }
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
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
  rig.temporary(128 * kMiB, s);
  capture.end();
  CHECK((!onPages(rig.allocator) || rig.reservedBy(graph.pool()) <= mib(192)));
  graph.replay(s);
  graph.replay(other);
}

TEST_CASE("a stream is caught from when it joins, and not when it does not", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), joins = rig.stream(), other = rig.stream();
  MemPool scoped(rig.pools);
  Graph graph(rig.pools);
  GraphCapture capture(graph, s);
  rig.touch(s, rig.allocate(kKiB, s));
  CHECK(rig.allocator.poolFor(joins) == MempoolId_t{});
  rig.join(joins, s);
  CHECK(rig.allocator.poolFor(joins) == graph.pool());
  CHECK(rig.allocator.poolFor(other) == MempoolId_t{});
  void* outside = rig.written(kMiB, other);
  {
    const MemPoolScope scope(scoped);  // captures come first
    CHECK(rig.allocator.poolFor(joins) == graph.pool());
    CHECK(rig.allocator.poolFor(other) == scoped.id());
  }
  rig.temporary(kMiB, joins);
  rig.join(s, joins);
  capture.end();
  CHECK(rig.allocator.poolFor(s) == MempoolId_t{});
  CHECK(rig.allocator.poolFor(joins) == MempoolId_t{});
  CHECK(rig.pools.getCheckpointState(graph.pool()).blocks.size() == 1);
  rig.free(outside);
}

TEST_CASE("any thread's allocations on a captured stream are the capture's", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), other = rig.stream();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s, {}, CaptureMode::kRelaxed);
  void *inside = nullptr, *outside = nullptr;
  std::thread([&] {
    inside = rig.written(kMiB, s);
    outside = rig.written(kMiB, other);
  }).join();
  CHECK(rig.holds(graph.pool(), {inside}));
  rig.free(inside);
  capture.end();
  graph.replay(s);
  rig.free(outside);
}

TEST_CASE("captures that are under way at once keep to their own pools", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  Graph one(rig.pools), two(rig.pools);
  GraphCapture first(one, s, {}, CaptureMode::kThreadLocal);
  GraphCapture second(two, t, {}, CaptureMode::kThreadLocal);
  void *a = rig.written(10 * kMiB, s), *b = rig.written(10 * kMiB, t);
  CHECK(rig.holds(one.pool(), {a}));
  CHECK(rig.holds(two.pool(), {b}));
  rig.free(a);
  rig.free(b);
  first.end();
  rig.temporary(10 * kMiB, t);
  second.end();
  one.replay(s);
  two.replay(t);
}

TEST_CASE("what an included stream allocates, though another capture records it, is the graph's",
          "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), body = rig.stream();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s, {}, CaptureMode::kThreadLocal);
  rig.temporary(10 * kMiB, s);
  rig.sim().beginCapture(body, CaptureMode::kThreadLocal).orThrow();
  CHECK(rig.allocator.poolFor(body) == MempoolId_t{});
  graph.includeStream(body);
  CHECK(rig.allocator.poolFor(body) == graph.pool());
  void* inside = rig.written(20 * kMiB, body);
  CHECK(rig.holds(graph.pool(), {inside}));
  rig.free(inside);
  const DeviceGraph child = rig.sim().endCapture(body).orThrow();
  CHECK(rig.allocator.poolFor(body) == MempoolId_t{});
  capture.end();
  const std::int64_t captured = rig.reservedBy(graph.pool());
  rig.allocator.emptyCache();
  CHECK(rig.reservedBy(graph.pool()) == captured);  // the body's memory stays, too
  graph.replay(s);
  const DeviceGraphExec exec = rig.sim().instantiate(child).orThrow();
  rig.sim().launchGraph(exec, s).orThrow();
  rig.finish();
  rig.sim().destroyGraphExec(exec).orThrow();
  rig.sim().destroyGraph(child).orThrow();
}

TEST_CASE("growth during a capture leaves it active, in every mode", "[pools]") {
  for (const CaptureMode mode :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    PoolRig rig;
    const Stream s = rig.stream(), other = rig.stream();
    Graph graph(rig.pools);
    GraphCapture capture(graph, s, {}, mode);
    void* outside = nullptr;
    for (const std::size_t bytes : {kKiB, 3 * kMiB, 100 * kMiB}) {
      rig.temporary(bytes, s);
      outside = rig.allocate(bytes, other);
      rig.free(outside);
    }
    CHECK(rig.sim().captureInfo(s).orThrow().status == CaptureStatus::kActive);
    capture.end();
    graph.replay(s);
  }
}

TEST_CASE(
    "a stream that a capture of its own begins on is that one's, also where another includes it",
    "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), body = rig.stream();
  Graph outer(rig.pools), own(rig.pools);
  outer.captureBegin(s, {}, CaptureMode::kRelaxed);
  rig.sim().beginCapture(body, CaptureMode::kRelaxed).orThrow();
  outer.includeStream(body);
  rig.temporary(3 * kMiB, body);
  rig.sim().destroyGraph(rig.sim().endCapture(body).orThrow()).orThrow();

  own.captureBegin(body, {}, CaptureMode::kRelaxed);
  CHECK(rig.allocator.poolFor(body) == own.pool());
  rig.temporary(8 * kMiB, body);
  own.captureEnd();
  outer.captureEnd();
  outer.reset();
  rig.allocator.emptyCache();
  own.replay(body);
}

// The stream's body is over, and the device calls its capture as it calls the other graph's.
TEST_CASE("an included stream that joins another graph's capture is that one's", "[pools]") {
  for (const bool included_first : {true, false}) {
    PoolRig rig;
    const Stream s = rig.stream(), t = rig.stream(), body = rig.stream();
    Graph includes(rig.pools), other(rig.pools);
    const auto begin = [&](Graph& graph, Stream on) {
      graph.captureBegin(on, {}, CaptureMode::kRelaxed);
    };
    if (!included_first) begin(other, t);
    begin(includes, s);
    rig.sim().beginCapture(body, CaptureMode::kRelaxed).orThrow();
    includes.includeStream(body);
    rig.temporary(3 * kMiB, body);
    rig.sim().destroyGraph(rig.sim().endCapture(body).orThrow()).orThrow();
    if (included_first) begin(other, t);
    rig.join(body, t);
    CHECK(rig.allocator.poolFor(body) == other.pool());
    rig.temporary(5 * kMiB, body);
    rig.join(t, body);
    other.captureEnd();

    // Another body of the first graph, on the same stream.
    rig.sim().beginCapture(body, CaptureMode::kRelaxed).orThrow();
    CHECK(rig.allocator.poolFor(body) == includes.pool());
    rig.sim().destroyGraph(rig.sim().endCapture(body).orThrow()).orThrow();
    includes.captureEnd();
    includes.reset();
    rig.allocator.emptyCache();
    other.replay(t);
  }
}

TEST_CASE("where the device does not say whether a stream has joined, a request fails", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), joins = rig.stream();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s, {}, CaptureMode::kRelaxed);
  rig.join(joins, s);
  rig.sim().faults().failAll(Call::kCaptureInfo, ErrorKind::kOther);
  CHECK_THROWS_AS(rig.allocator.allocate(8 * kMiB, joins), DeviceFailure);
  rig.sim().faults().clear();
  rig.temporary(8 * kMiB, joins);
  rig.join(s, joins);
  capture.end();
  graph.replay(s);
}

TEST_CASE("the per-thread default stream is captured by none, nor replayed on", "[pools]") {
  PoolRig rig;
  constexpr Stream kPerThread{2};
  const Stream s = rig.stream();
  const std::string name = "per-thread default stream";
  const auto refused = [&](auto verb) {
    return refusalOf<InvalidArgument>(verb).find(name) != std::string::npos;
  };
  Graph graph(rig.pools);
  GraphMemory memory(rig.pools);
  MemPool pool(rig.pools);
  CHECK(refused([&] { graph.captureBegin(kPerThread); }));
  CHECK(refused([&] { memory.captureBegin(kPerThread); }));
  CHECK(refused([&] { (void)pool.allocate(512, kPerThread); }));
  graph.captureBegin(s);
  rig.temporary(3 * kMiB, s);
  CHECK(refused([&] { graph.includeStream(kPerThread); }));
  CHECK(refused([&] { (void)rig.allocate(512, kPerThread); }));
  graph.captureEnd();
  CHECK(refused([&] { graph.replay(kPerThread); }));
  graph.replay(s);
}

}  // namespace cistern::test
