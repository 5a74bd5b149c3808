// Streams that a program destroys, having said so, while pools have their memory and graphs were
// replayed on them.
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

constexpr std::uint64_t kLag = 1'000'000;

/// At the end nothing may have been asked of a stream that is not alive.
struct ForgettingRig : PoolRig {
  explicit ForgettingRig(std::string_view conf = "", bool reuse_streams = false)
      : PoolRig(conf, configOf(reuse_streams)), s(stream()), gone(stream()) {}
  ~ForgettingRig() { CHECK(sim().callsOnDeadStreams() == 0); }

  static sim::SimConfig configOf(bool reuse_streams) {
    sim::SimConfig config = simOf(kGiB, kLag);
    config.reuse_streams = reuse_streams;
    return config;
  }
  void leave(Stream stream) {
    allocator.forgetStream(stream);
    sim().destroyStream(stream).orThrow();
  }
  Stream s, gone;
};

/// A graph with 600 of the device's 1024 MiB.
void captureLarge(ForgettingRig& rig, Graph& graph) {
  GraphCapture capture(graph, rig.s);
  rig.temporary(600 * kMiB, rig.s);
  capture.end();
}

}  // namespace

TEST_CASE(
    "what a forgotten stream has left in a pool serves the pool's others, and all when it ends",
    "[pools]") {
  ForgettingRig rig;
  MemPool pool(rig.pools);
  {
    const MemPoolScope scope(pool);
    rig.work.delay(rig.gone, kLongNs);
    rig.temporary(600 * kMiB, rig.gone);
    rig.leave(rig.gone);
    rig.temporary(100 * kMiB, rig.s);
    CHECK(rig.sim().now() < kLongNs);
    rig.finish();
    rig.temporary(600 * kMiB, rig.s);
  }
  rig.pools.emptyCache(pool.id());
}

TEST_CASE("a new stream with a forgotten one's handle comes after it in every pool", "[pools]") {
  ForgettingRig rig("", true);
  MemPool pool(rig.pools);
  rig.work.delay(rig.gone, kLongNs);
  void* eager = rig.temporary(4 * kMiB, rig.gone);
  void* kept = nullptr;
  {
    const MemPoolScope scope(pool);
    kept = rig.temporary(4 * kMiB, rig.gone);
  }
  rig.leave(rig.gone);
  const Stream young = rig.stream();
  REQUIRE(young == rig.gone);
  {
    const MemPoolScope scope(pool);
    CHECK(rig.temporary(4 * kMiB, young) == kept);
  }
  CHECK(rig.temporary(4 * kMiB, young) == eager);
  CHECK(countOf(rig.sim(), Call::kWaitEvent) == 1);
}

TEST_CASE("the memory of a reset graph stays until its replays on a forgotten stream are complete",
          "[pools]") {
  for (const bool before_reset : {true, false}) {
    ForgettingRig rig;
    Graph graph(rig.pools);
    captureLarge(rig, graph);
    const MempoolId_t id = graph.pool();
    rig.work.delay(rig.gone, kLongNs);
    graph.replay(rig.gone);
    if (before_reset) rig.leave(rig.gone);
    graph.reset();
    if (!before_reset) rig.leave(rig.gone);
    const std::uint64_t waits = countOf(rig.sim(), Call::kSynchronizeDevice);
    rig.allocator.emptyCache();
    rig.pools.emptyCache(id);
    CHECK(rig.reservedBy(id) >= mib(600));
    CHECK(countOf(rig.sim(), Call::kSynchronizeDevice) == waits);
    rig.free(rig.written(300 * kMiB, rig.s));
    rig.finish();
    rig.pools.emptyCache(id);
    CHECK(!rig.known(id));
    rig.temporary(900 * kMiB, rig.s);
  }
}

TEST_CASE("a replay on a new stream with a forgotten one's handle is waited for", "[pools]") {
  ForgettingRig rig("", true);
  Graph graph(rig.pools);
  captureLarge(rig, graph);
  const MempoolId_t id = graph.pool();
  graph.replay(rig.gone);
  rig.leave(rig.gone);
  rig.finish();
  const Stream young = rig.stream();
  REQUIRE(young == rig.gone);
  rig.work.delay(young, kLongNs);
  graph.replay(young);
  graph.reset();
  rig.allocator.emptyCache();
  CHECK(rig.reservedBy(id) >= mib(600));
  rig.finish();
  rig.temporary(900 * kMiB, rig.s);
}

TEST_CASE("a capture begins on a new stream with a forgotten one's handle", "[pools]") {
  ForgettingRig rig("", true);
  rig.work.delay(rig.gone, kLongNs);
  rig.temporary(30 * kMiB, rig.gone);
  rig.leave(rig.gone);
  const Stream young = rig.stream();
  REQUIRE(young == rig.gone);
  Graph graph(rig.pools);
  {
    GraphCapture capture(graph, young);
    rig.temporary(30 * kMiB, young);
    CHECK_THROWS_AS(rig.allocator.forgetStream(young), InvalidArgument);
    capture.end();
  }
  CHECK(rig.sim().now() < kLongNs);
  graph.replay(rig.s);
  graph.replay(young);
  graph.reset();
  rig.leave(young);
}

TEST_CASE("memory that a forgotten stream has left in a pool is a capture's when it is complete",
          "[pools]") {
  ForgettingRig rig;
  const MempoolId_t id = graphPoolHandle();
  rig.pools.createOrIncrefPool(id);
  {
    const MemPoolScope scope(rig.pools, id);
    rig.work.delay(rig.gone, kLongNs);
    rig.temporary(30 * kMiB, rig.gone);
  }
  rig.leave(rig.gone);
  Graph graph(rig.pools);
  {
    GraphCapture capture(graph, rig.s, id);
    rig.temporary(30 * kMiB, rig.s);
    capture.end();
  }
  graph.replay(rig.s);
  graph.reset();
  rig.finish();
  rig.pools.releasePool(id);
  rig.allocator.emptyCache();
  CHECK(!rig.known(id));
}

TEST_CASE("a pool that lends what a forgotten stream has left does so when it is complete",
          "[pools]") {
  ForgettingRig rig;
  MemPool pool(rig.pools, {nullptr, true, true});
  {
    const MemPoolScope scope(pool);
    rig.temporary(800 * kMiB, rig.gone);
    rig.leave(rig.gone);
  }
  rig.finish();
  rig.temporary(700 * kMiB, rig.s);
}

}  // namespace cistern::test
