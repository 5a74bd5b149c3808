// Faults that others have in their pools and captures, and that we must not: one test each.
#include <thread>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {

TEST_CASE("a capture that fails at any device call leaks no pool and leaves no routing on",
          "[pools]") {
  for (std::uint64_t nth = 1; nth < 80; ++nth) {
    INFO("call " << nth << " fails");
    PoolRig rig("background_thread:false");
    const Stream s = rig.stream();
    const std::uint64_t before = takenOf(rig.sim());
    const MempoolId_t last = graphPoolHandle(false), own{last.uuid + 1, 0};
    bool failed = false;
    {
      Graph graph(rig.pools);
      rig.sim().faults().failNthOfAll(nth, ErrorKind::kInvalidValue);
      void* small = nullptr;
      try {
        GraphCapture capture(graph, s);
        small = rig.allocate(kKiB, s);
        rig.free(rig.allocate(30 * kMiB, s));
        rig.free(std::exchange(small, nullptr));
        capture.end();
      } catch (const Error&) {
        failed = true;
        CHECK(!graph.capturing());
        CHECK(graph.pool() == MempoolId_t{});
      }
      rig.sim().faults().clear();
      rig.free(small);
      CHECK(rig.allocator.poolFor(s) == MempoolId_t{});
      CHECK(rig.sim().captureInfo(s).orThrow().status == CaptureStatus::kNone);
    }
    rig.allocator.emptyCache();
    rig.pools.createOrIncrefPool(graphPoolHandle());  // tidies
    CHECK(!rig.known(own));
    CHECK(takenOf(rig.sim()) == before);
    rig.allocator.audit();
    if (!failed && rig.sim().faults().hits() == 0) return;
  }
}

TEST_CASE("a capture that an exception leaves leaks no pool and leaves no routing on", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  Graph graph(rig.pools);
  try {
    const GraphCapture capture(graph, s, pool.id());
    rig.temporary(30 * kMiB, s);
    throw std::runtime_error("the program's own");
  } catch (const std::runtime_error&) {
  }
  CHECK(pool.useCount() == 1);
  CHECK(rig.reservedBy(pool.id()) == 0);
  CHECK(rig.allocator.poolFor(s) == MempoolId_t{});
  CHECK(rig.sim().captureInfo(s).orThrow().status == CaptureStatus::kNone);
}

TEST_CASE("a live pool can be trimmed and regrown: 75% of the device, free, then 87%", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  Graph graph(rig.pools);
  {
    GraphCapture capture(graph, s, pool.id());
    rig.temporary(2 * kMiB, s);
    capture.end();
  }
  const MemPoolScope scope(pool);
  for (int round = 0; round < 3; ++round) {
    rig.temporary(768 * kMiB, s);
    rig.temporary(890 * kMiB, s);
    rig.finish();
    pool.emptyCache();
    CHECK(rig.reservedBy(pool.id()) <= mib(20));
  }
  graph.replay(s);
}

TEST_CASE("user pools do not inherit the rules of captures", "[pools]") {
  PoolRig rig("limit:512M");
  const Stream s = rig.stream(), t = rig.stream(), captured = rig.stream();
  MemPool pool(rig.pools);
  Graph graph(rig.pools);
  GraphCapture capture(graph, captured, {}, CaptureMode::kRelaxed);
  rig.temporary(kMiB, captured);
  // While another pool is captured into, this one frees by events, shares and gives back.
  void* block = pool.allocate(300 * kMiB, s);
  rig.touch(s, block);
  rig.join(t, s);
  rig.read(t, block);
  rig.allocator.recordStream(block, t);
  rig.free(block);
  rig.sim().synchronizeStream(t).orThrow();
  rig.sim().synchronizeStream(s).orThrow();
  void* again = pool.allocate(300 * kMiB, s);
  rig.free(again);
  rig.sim().synchronizeStream(s).orThrow();
  void* shared = pool.allocate(300 * kMiB, t);
  rig.free(shared);
  rig.sim().synchronizeStream(t).orThrow();
  void* larger = pool.allocate(450 * kMiB, s);
  rig.free(larger);
  rig.sim().synchronizeStream(s).orThrow();
  pool.emptyCache();
  CHECK(rig.reservedBy(pool.id()) == 0);
  capture.end();
  graph.replay(captured);
}

TEST_CASE("a one-shot stream strands no memory of a pool", "[pools]") {
  PoolRig rig;
  MemPool pool(rig.pools);
  for (int i = 0; i < 10; ++i) {
    const Streams once(rig.allocator, 1);
    void* block = pool.allocate(600 * kMiB, once[0]);
    rig.touch(once[0], block);
    rig.free(block);
  }
  CHECK(rig.reservedBy(pool.id()) <= mib(624));
}

TEST_CASE("worker threads do not escape the pool scope: by stream, or by naming the pool",
          "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool by_stream(rig.pools), by_name(rig.pools);
  const MemPoolScope scope(by_stream, PoolFilter::stream(s));
  std::vector<void*> caught(4), named(4);
  std::vector<std::thread> workers;
  for (std::size_t i = 0; i < caught.size(); ++i) {
    workers.emplace_back([&, i] {
      caught[i] = rig.allocate(kMiB, s);
      named[i] = by_name.allocate(kMiB, s);
    });
  }
  for (std::thread& worker : workers) worker.join();
  CHECK(rig.holds(by_stream.id(), {caught.begin(), caught.end()}));
  CHECK(rig.holds(by_name.id(), {named.begin(), named.end()}));
  CHECK(reservedOf(rig.allocator) == rig.reservedBy(by_stream.id()) + rig.reservedBy(by_name.id()));
}

TEST_CASE("nothing is freed on the device during a capture, whoever asks on its streams",
          "[pools]") {
  PoolRig rig("background_thread:false");
  const Stream s = rig.stream();
  void* held = rig.allocate(200 * kMiB, s);
  void* cached = rig.allocate(500 * kMiB, s);
  rig.touch(s, cached);
  rig.free(cached);
  rig.finish();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s);
  const auto frees = [&] {
    return countOf(rig.sim(), Call::kFree) + countOf(rig.sim(), Call::kUnmap);
  };
  const std::uint64_t before = frees();
  CHECK(rig.outOfMemory(900 * kMiB, s));
  CHECK(reservedOf(rig.allocator) == mib(700));
  rig.temporary(200 * kMiB, s);
  CHECK(frees() == before);
  CHECK(rig.sim().captureInfo(s).orThrow().status == CaptureStatus::kActive);
  capture.end();
  graph.replay(s);
  rig.free(held);
}

TEST_CASE("emptyCache of another thread during a capture leaves it active", "[pools]") {
  for (const CaptureMode mode :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    PoolRig rig;
    const Stream s = rig.stream(), t = rig.stream();
    rig.temporary(50 * kMiB, t);
    Graph graph(rig.pools);
    GraphCapture capture(graph, s, {}, mode);
    rig.temporary(50 * kMiB, s);
    std::thread([&] {
      rig.temporary(kMiB, t);
      rig.allocator.emptyCache();
      rig.pools.emptyCache(graph.pool());
      rig.pools.emptyCache({});
    }).join();
    CHECK(rig.sim().captureInfo(s).orThrow().status == CaptureStatus::kActive);
    rig.temporary(50 * kMiB, s);
    capture.end();
    graph.replay(s);
  }
}

TEST_CASE("a pool shared by graphs is as large, whether they come in rising or falling size",
          "[pools][pages]") {
  std::int64_t reserved[2] = {0, 0};
  for (const bool rising : {true, false}) {
    PoolRig rig;
    const Stream s = rig.stream();
    MemPool pool(rig.pools);
    std::vector<std::unique_ptr<Graph>> graphs;
    for (std::size_t i = 0; i < 16; ++i) {
      const std::size_t step = rising ? i + 1 : 16 - i;
      graphs.push_back(std::make_unique<Graph>(rig.pools));
      GraphCapture capture(*graphs.back(), s, pool.id());
      void* one = rig.written(step * 10 * kMiB, s);
      void* two = rig.written(step * 4 * kMiB, s);
      rig.free(one);
      rig.temporary(step * 7 * kMiB, s);
      rig.free(two);
      capture.end();
    }
    for (const auto& graph : graphs) graph->replay(s);
    reserved[rising ? 1 : 0] = rig.reservedBy(pool.id());
    rig.finish();
  }
  INFO(reserved[0] << " falling, " << reserved[1] << " rising");
  CHECK(double(reserved[1]) <= 1.02 * double(reserved[0]));
}

}  // namespace cistern::test
