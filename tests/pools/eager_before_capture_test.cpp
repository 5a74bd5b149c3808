// A pool that was used eagerly, and then by a graph.
#include <functional>
#include <random>
#include <vector>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kEarly = 8 * kMiB;

void writeSlowly(PoolRig& rig, Stream stream, void* block) {
  const sim::Access access{toAddress(block), kEarly, sim::AccessKind::kWrite};
  rig.sim().launch(stream, {"slow eager work", {access}, kLongNs, nullptr}).orThrow();
}

/// A block of the pool that waits for `waits_for` alone, while `own` still works on it.
void* freedEarly(PoolRig& rig, MemPool& pool, Stream own, Stream waits_for) {
  void* block = pool.allocate(kEarly, own);
  rig.allocator.recordStream(block, waits_for);
  writeSlowly(rig, own, block);
  rig.free(block);
  return block;
}

}  // namespace

// A heap's own free memory is taken in its stream's order; a replay on another stream does not
// follow what that stream had queued eagerly before the capture.
TEST_CASE("a replay follows eager work that still used the memory when it was captured",
          "[pools]") {
  PoolRig rig("background_thread:false", simOf(kGiB, 50'000));
  const Stream s = rig.stream(), side = rig.stream();
  MemPool pool(rig.pools);
  {
    const MemPoolScope scope(pool);
    rig.temporary(9 * kMiB, side);  // queued, and freed in side's order
  }
  Graph graph(rig.pools);
  GraphCapture capture(graph, s, pool.id());
  rig.join(side, s);
  rig.temporary(9 * kMiB, side);  // the same memory
  rig.join(s, side);
  capture.end();
  graph.replay(s);
  CHECK(rig.sim().races().empty());
}

// The streams that such a block waits for may all be done while its own is not: that stream's order
// is no order for a graph, nor for whoever is given memory that a capture has left.
TEST_CASE("a block that waits for another stream when a capture begins waits for its own too",
          "[pools]") {
  using After = std::function<void(PoolRig&, MemPool&, Graph&, Stream)>;
  const std::pair<const char*, After> afters[] = {
      {"replay", [](PoolRig&, MemPool&, Graph& graph, Stream other) { graph.replay(other); }},
      {"empty",
       [](PoolRig& rig, MemPool&, Graph& graph, Stream) {
         graph.reset();
         rig.allocator.emptyCache();
       }},
      {"other stream", [](PoolRig& rig, MemPool& pool, Graph& graph, Stream other) {
         graph.reset();
         rig.touch(other, pool.allocate(kEarly, other));
       }}};
  for (const CaptureMode mode :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    for (const bool origin : {true, false}) {
      for (const auto& [name, after] : afters) {
        INFO(name << (origin ? ", of the origin" : ", of a stream that joins"));
        PoolRig rig;
        MemPool pool(rig.pools);
        const Stream s = rig.stream(), side = rig.stream(), other = rig.stream();
        const Stream own = origin ? s : side;
        void* early = freedEarly(rig, pool, own, other);
        Graph graph(rig.pools);
        GraphCapture capture(graph, s, pool.id(), mode);
        rig.join(side, s);
        CHECK(rig.temporary(kEarly, own) != early);
        rig.join(s, side);
        capture.end();
        after(rig, pool, graph, other);
        CHECK(rig.sim().races().empty());
      }
    }
  }
}

TEST_CASE("a block put off for another capture waits for its own stream in this one", "[pools]") {
  PoolRig rig;
  MemPool pool(rig.pools);
  const Stream s = rig.stream(), captured = rig.stream(), other = rig.stream();
  Graph elsewhere(rig.pools), graph(rig.pools);
  GraphCapture first(elsewhere, captured, {}, CaptureMode::kRelaxed);
  void* early = freedEarly(rig, pool, s, captured);
  GraphCapture capture(graph, s, pool.id(), CaptureMode::kRelaxed);
  first.end();
  CHECK(rig.temporary(kEarly, s) != early);
  CHECK(rig.temporary(2 * kEarly, s) != early);
  capture.end();
  graph.replay(other);
}

TEST_CASE("what waited when a capture began serves any stream of it once it is complete",
          "[pools]") {
  for (const bool pending : {true, false}) {
    INFO((pending ? "pending" : "free"));
    PoolRig rig;
    MemPool pool(rig.pools);
    const Stream s = rig.stream(), other = rig.stream(), user = rig.stream();
    if (pending) {
      freedEarly(rig, pool, other, user);
    } else {
      void* block = pool.allocate(kEarly, other);
      writeSlowly(rig, other, block);
      rig.free(block);
    }
    const std::int64_t before = rig.reservedBy(pool.id());
    Graph graph(rig.pools);
    GraphCapture capture(graph, s, pool.id());
    CHECK(rig.outOfMemory(kGiB, s));  // looks at what waits
    rig.sim().advanceHost(2 * kLongNs);
    rig.temporary(kEarly, s);
    CHECK(rig.reservedBy(pool.id()) == before);
    capture.end();
    graph.replay(s);
  }
}

// The device is idle as far as eager work goes; what a capture has freed is complete for nobody.
TEST_CASE("waiting for the whole device completes nothing that a capture has freed", "[pools]") {
  PoolRig rig("background_thread:false");
  MemPool pool(rig.pools);
  const Stream s = rig.stream(), side = rig.stream(), outside = rig.stream();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s, pool.id(), CaptureMode::kRelaxed);
  rig.join(side, s);
  rig.temporary(kEarly, s);
  rig.allocator.setLimit(std::uint64_t(reservedOf(rig.allocator)));
  CHECK(rig.outOfMemory(kEarly, outside));  // waits for all there is
  CHECK(rig.outOfMemory(kEarly, side));
  rig.join(s, side);
  capture.end();
  graph.replay(s);
}

// Pages that have moved on leave old mappings behind, which queued work may still use; the end of a
// capture completes what the capture has freed, and nothing else.
TEST_CASE("a capture leaves mappings that eager work still uses where they are", "[pools][pages]") {
  PoolRig rig("background_thread:false,recycle:eager,backing:pages");
  rig.allocator.setLimit(64 * kMiB);
  MemPool pool(rig.pools);
  const Stream s = rig.stream();
  std::mt19937 random(3);
  std::vector<void*> held;
  const auto eager = [&] {
    if (held.size() > 2 || (!held.empty() && random() % 2 == 0)) {
      std::swap(held[random() % held.size()], held.back());
      rig.free(held.back());
      return held.pop_back();
    }
    held.push_back(pool.allocate((2 + random() % 8) * 2 * kMiB, s));
    rig.touch(s, held.back());
  };
  rig.sim().launch(s, {"holds the stream up", {}, 100 * kLongNs, nullptr}).orThrow();
  for (int i = 0; i < 2'000; ++i) eager();
  REQUIRE(waits(rig.sim()) + countOf(rig.sim(), Call::kUnmap) == 0);
  {
    Graph graph(rig.pools);
    GraphCapture capture(graph, s, pool.id());
    capture.end();
  }
  REQUIRE(countOf(rig.sim(), Call::kMap) > 3 * countOf(rig.sim(), Call::kCreatePage));
  rig.allocator.setLimit(512 * kMiB);
  for (int i = 0; i < 200; ++i) eager();
  CHECK(rig.sim().races().empty());
  rig.finish();
  for (void* block : held) rig.free(block);
}

// What the capture has freed cannot be ordered before eager work, so a request that comes to it in
// the end goes without. Nothing of that is left.
TEST_CASE("memory that an eager request cannot have during a capture stays nobody's", "[pools]") {
  for (const char* conf : {"backing:pages", "backing:segments"}) {
    PoolRig rig(conf);
    const Stream captured = rig.stream(), eager = rig.stream();
    MemPool pool(rig.pools);
    Graph graph(rig.pools);
    graph.captureBegin(captured, pool.id(), CaptureMode::kRelaxed);
    void* const result = rig.allocate(512 * kKiB, captured);
    rig.free(rig.allocate(256 * kKiB, captured));
    rig.allocator.setLimit(2 * kMiB);
    CHECK_THROWS_AS(pool.allocate(200 * kKiB, eager), OutOfMemory);
    CHECK(rig.allocator.memoryStats()[Stat::kAllocation].current == 1);
    CHECK(rig.holds(pool.id(), {result}));
    rig.allocator.audit();
    graph.captureEnd();
    void* const served = pool.allocate(200 * kKiB, eager);  // the same memory, now complete
    CHECK(rig.holds(pool.id(), {result, served}));
    rig.free(served);
    rig.free(result);
  }
}

// docs/streams-and-capture.md has these figures.
TEST_CASE("a capture takes over what the same work had before, if that is known to be complete",
          "[pools]") {
  struct Case {
    bool same_stream, waits, empties;
    std::int64_t pages, segments;  ///< MiB reserved in the end
  };
  const Case cases[] = {{true, false, false, 128, 128}, {true, true, false, 64, 128},
                        {false, true, false, 128, 128}, {false, false, false, 128, 128},
                        {true, true, true, 64, 64},     {false, true, true, 64, 64}};
  for (const Case& one : cases) {
    CAPTURE(one.same_stream, one.waits, one.empties);
    PoolRig rig("background_thread:false", simOf(kGiB, 10'000'000));
    const Stream s = rig.stream(), before = one.same_stream ? s : rig.stream();
    const auto run = [&](Stream on) {
      void* const first = rig.written(24 * kMiB, on);
      void* const second = rig.written(40 * kMiB, on);
      rig.free(first);
      for (void* block : {rig.written(16 * kMiB, on), rig.written(8 * kMiB, on), second})
        rig.free(block);
    };
    run(before);
    if (one.waits) rig.sim().synchronizeStream(before).orThrow();
    if (one.empties) rig.allocator.emptyCache();
    Graph graph(rig.pools);
    GraphCapture capture(graph, s);
    run(s);
    capture.end();
    CHECK(rig.reservedBy(graph.pool()) == mib(64));
    CHECK(reservedOf(rig.allocator) == mib(onPages(rig.allocator) ? one.pages : one.segments));
    graph.replay(s);
    rig.finish();
  }
}

}  // namespace cistern::test
