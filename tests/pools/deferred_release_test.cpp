// A graph that is reset while replays of it are queued keeps its memory until they are complete.
#include <atomic>
#include <list>
#include <optional>

#include "allocator/engine/engine.hpp"
#include "tests/pools/pools_support.hpp"
#include "tests/support/interposed_device.hpp"

namespace cistern::test {
namespace {

constexpr std::uint64_t kReplayLag = 1'000'000;

/// A graph with 600 of the device's 1024 MiB, replayed far behind the host.
struct LateRig : PoolRig {
  explicit LateRig(std::string_view conf = "")
      : PoolRig(conf, simOf(kGiB, kReplayLag)), s(stream()) {
    graph.emplace(pools);
    GraphCapture capture(*graph, s);
    temporary(600 * kMiB, s);
    capture.end();
    id = graph->pool();
  }
  Stream s;
  std::optional<Graph> graph;
  MempoolId_t id;
};

/// Far more graphs, each with a pool of its own, than there is memory for at once.
void captureAgainAndAgain(std::string_view conf) {
  for (const bool replays : {true, false}) {
    PoolRig rig(conf);
    const Stream s = rig.stream();
    for (int round = 0; round < 40; ++round) {
      Graph graph(rig.pools);
      GraphCapture capture(graph, s);
      rig.temporary(30 * kMiB, s);
      capture.end();
      if (replays) graph.replay(s);
    }
  }
}

}  // namespace

TEST_CASE("the memory of a reset graph goes to nobody before its replays are complete", "[pools]") {
  LateRig rig;
  const Stream t = rig.stream();
  rig.graph->replay(rig.s);
  rig.graph->reset();
  CHECK(rig.graph->pool() == MempoolId_t{});
  CHECK(rig.pools.getPoolUseCount(rig.id) == 1);
  rig.allocator.emptyCache();
  CHECK(rig.reservedBy(rig.id) >= mib(600));
  CHECK(!rig.sim().queryStream(rig.s).orThrow());
  void* small = rig.written(300 * kMiB, t);
  rig.free(small);
  rig.finish();
  rig.pools.emptyCache(rig.id);
  CHECK(!rig.known(rig.id));
  rig.temporary(900 * kMiB, t);
}

TEST_CASE("a graph that was never replayed lets go at its reset", "[pools]") {
  LateRig rig;
  rig.graph->reset();
  rig.allocator.emptyCache();
  CHECK(!rig.known(rig.id));
}

// A miss asks the tidier for as long as anything is counted.
TEST_CASE("what a tidier would find is counted until it is gone", "[pools]") {
  LateRig rig;
  const std::atomic<std::size_t>& untidy = rig.allocator.engine().hooks.untidy;
  CHECK(untidy == 0);
  rig.graph->replay(rig.s);
  rig.graph->reset();
  CHECK(untidy == 1);  // the graph
  rig.pools.createOrIncrefPool({7, 7});
  void* const block = rig.pools.allocate(kMiB, rig.s, {7, 7});
  rig.pools.releasePool({7, 7});
  CHECK(untidy == 2);  // and the pool that drains
  rig.finish();
  rig.temporary(20 * kMiB, rig.s);
  CHECK(untidy == 2);  // the two pools
  rig.free(block);
  rig.allocator.emptyCache();
  CHECK(untidy == 0);
}

TEST_CASE("replays on several streams are all waited for", "[pools]") {
  LateRig rig;
  const Stream t = rig.stream();
  rig.graph->replay(rig.s);
  rig.work.delay(t, 10 * kReplayLag);
  rig.graph->replay(t);
  rig.graph.reset();
  rig.sim().synchronizeStream(rig.s).orThrow();
  rig.pools.emptyCache(rig.id);
  CHECK(rig.reservedBy(rig.id) >= mib(600));
  rig.sim().synchronizeStream(t).orThrow();
  rig.pools.emptyCache(rig.id);
  CHECK(!rig.known(rig.id));
}

TEST_CASE("the memory of a reset graph stays while a destroyed stream may still replay it",
          "[pools]") {
  LateRig rig;
  const Stream t = rig.stream(), gone = rig.stream();
  rig.graph->replay(gone);
  rig.sim().destroyStream(gone).orThrow();
  rig.graph->reset();
  CHECK(rig.reservedBy(rig.id) >= mib(600));
  void* small = rig.written(300 * kMiB, t);
  rig.free(small);
  SECTION("until its pool is emptied") { rig.pools.emptyCache(rig.id); }
  SECTION("until all are emptied") {}
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
  rig.temporary(900 * kMiB, t);
}

TEST_CASE("a refused event behind a reset graph's replays is recorded when emptyCache asks",
          "[pools]") {
  LateRig rig;
  rig.graph->replay(rig.s);
  rig.sim().faults().failAll(Call::kRecordEvent, ErrorKind::kOther);
  rig.graph->reset();
  rig.sim().faults().clear();
  rig.finish();
  CHECK(rig.reservedBy(rig.id) >= mib(600));
  rig.allocator.emptyCache();
  rig.finish();
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("pools that end wait for replays that are queued", "[pools]") {
  PoolRig rig("", simOf(kGiB, kReplayLag));
  const Stream s = rig.stream(), gone = rig.stream();
  {
    Pools pools(rig.allocator);
    Graph graph(pools);
    GraphCapture capture(graph, s);
    rig.temporary(600 * kMiB, s);
    capture.end();
    graph.replay(s);
    graph.replay(gone);
    rig.sim().destroyStream(gone).orThrow();
  }
  rig.allocator.emptyCache();
  rig.temporary(900 * kMiB, s);
}

TEST_CASE("replays whose event a capture has taken are asked about again", "[pools]") {
  for (const bool ends_at_once : {false, true}) {
    CAPTURE(ends_at_once);
    sim::SimDevice sim(simOf(kGiB, kReplayLag));
    InterposedDevice device(sim);
    CachingAllocator allocator(device, optionsOf());
    Pools pools(allocator);
    const Stream s = sim.createStream().orThrow(), t = sim.createStream().orThrow();
    Graph graph(pools);
    GraphCapture capture(graph, s);
    allocator.free(allocator.allocate(600 * kMiB, s));
    capture.end();
    const MempoolId_t id = graph.pool();
    graph.replay(t);
    bool capturing = false;
    const auto end = [&] {
      sim.destroyGraph(sim.endCapture(t).orThrow()).orThrow();
      device.before = nullptr;
    };
    device.before = [&](Call call) {
      if (capturing) return end();
      if (call != Call::kRecordEvent) return;
      sim.beginCapture(t, CaptureMode::kThreadLocal).orThrow();
      capturing = true;
      if (!ends_at_once) device.before = nullptr;
    };
    graph.reset();
    if (!ends_at_once) end();
    for (int i = 0; i < 3; ++i) allocator.emptyCache();
    sim.synchronizeDevice().orThrow();
    for (int i = 0; i < 2; ++i) allocator.emptyCache();
    CHECK(refusalOf<PoolError>([&] { (void)pools.memoryStats(id); }) != "");
    allocator.audit();
  }
}

TEST_CASE("pools end while replays of reset graphs cannot be waited for", "[pools]") {
  for (const bool captured : {false, true}) {
    CAPTURE(captured);
    PoolRig rig("", simOf(256 * kMiB, kReplayLag));
    const Stream s = rig.stream(), t = rig.stream();
    {
      Pools pools(rig.allocator);
      for (int i = 0; i < 3; ++i) {
        Graph graph(pools);
        GraphCapture capture(graph, s, {}, CaptureMode::kRelaxed);
        rig.temporary(8 * kMiB, s);
        capture.end();
        graph.replay(t);
        if (captured && i == 2) rig.sim().beginCapture(t, CaptureMode::kRelaxed).orThrow();
      }
      if (!captured) rig.sim().faults().failAll(Call::kSynchronizeEvent, ErrorKind::kOther);
    }
    rig.sim().faults().clear();
    if (captured) rig.sim().destroyGraph(rig.sim().endCapture(t).orThrow()).orThrow();
    CHECK(reservedOf(rig.allocator) > 0);  // the replays may write to it still
    for (int i = 0; i < 3; ++i) rig.temporary(8 * kMiB, s);
    rig.finish();
  }
}

TEST_CASE("memory of a reset graph whose replays are complete serves who is short of it",
          "[pools]") {
  LateRig rig;
  const Stream t = rig.stream();
  rig.graph->replay(rig.s);
  rig.graph->reset();
  rig.finish();
  rig.temporary(900 * kMiB, t);  // no verb of Pools was called in between
}

TEST_CASE("memory of a reset graph whose replays are queued is waited for by who is short of it",
          "[pools]") {
  LateRig rig;
  const Stream t = rig.stream();
  rig.graph->replay(rig.s);
  rig.graph->reset();
  rig.temporary(900 * kMiB, t);
}

TEST_CASE("many graphs that are reset while their replays are queued are asked about in turn",
          "[pools]") {
  constexpr int kGraphs = 300;
  PoolRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  const MempoolId_t pool = graphPoolHandle();
  std::list<Graph> graphs;
  for (int i = 0; i < kGraphs; ++i) {
    Graph& graph = graphs.emplace_back(rig.pools);
    GraphCapture capture(graph, s, pool);
    rig.temporary(kKiB, s);
    capture.end();
  }
  rig.work.delay(t, kLongNs);
  for (Graph& graph : graphs) graph.replay(t);
  const std::uint64_t before = countOf(rig.sim(), Call::kQueryEvent);
  graphs.clear();
  CHECK(countOf(rig.sim(), Call::kQueryEvent) - before < 40 * kGraphs);
  CHECK(rig.known(pool));
  rig.finish();
  for (int i = 0; i < kGraphs && rig.known(pool); ++i) rig.allocator.emptyCache();
  CHECK_FALSE(rig.known(pool));
}

TEST_CASE("graphs captured one after another on a stream, each reset, share pages",
          "[pools][pages]") {
  captureAgainAndAgain("limit:256M");
}

TEST_CASE("graphs captured one after another on a stream, each reset, share segments", "[pools]") {
  captureAgainAndAgain("limit:256M,backing:segments");
}

TEST_CASE("a report of too little memory names no heap that holds nothing", "[pools]") {
  PoolRig rig("", simOf(64 * kMiB));
  const Stream s = rig.stream();
  {
    MemPool pool(rig.pools);
    rig.free(pool.allocate(40 * kMiB, s));
  }
  rig.sim().synchronizeDevice().orThrow();
  rig.allocator.emptyCache();  // the pool is gone: its heap is nobody's
  void* const held = rig.allocate(20 * kMiB, s);
  try {
    (void)rig.allocate(60 * kMiB, s);
    FAIL("it fitted");
  } catch (const OutOfMemory& error) {
    REQUIRE(error.report().heaps.size() == 1);
    CHECK(error.report().heaps[0].stream == s);
    CHECK(error.report().heaps[0].allocated == 20 * kMiB);
  }
  rig.free(held);
}

}  // namespace cistern::test
