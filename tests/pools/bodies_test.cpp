// Bodies of conditional nodes: graphs of their own, whose memory is one graph's.
#include <optional>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kInBody = 8 * kMiB;

/// A graph that is being captured, and graphs that the device runs beside it, in no order.
class Bodies {
 public:
  explicit Bodies(PoolRig& rig, CaptureMode mode = CaptureMode::kRelaxed)
      : rig_(rig), origin(rig.stream()), graph(rig.pools), mode_(mode) {
    graph.captureBegin(origin, {}, mode);
  }
  ~Bodies() {
    for (const DeviceGraphExec exec : execs_) (void)rig_.sim().destroyGraphExec(exec);
    for (const DeviceGraph body : ended_) (void)rig_.sim().destroyGraph(body);
  }
  Bodies(const Bodies&) = delete;
  Bodies& operator=(const Bodies&) = delete;

  void begin(Stream stream) {
    rig_.sim().beginCapture(stream, mode_).orThrow();
    graph.includeStream(stream);
  }
  void end(Stream stream) { ended_.push_back(rig_.sim().endCapture(stream).orThrow()); }
  /// Of a request for the pool by name, on a stream that is not captured.
  bool outOfMemoryBeside(std::size_t bytes, Stream stream) {
    const auto ask = [&] { rig_.free(rig_.pools.allocate(bytes, stream, graph.pool())); };
    return !refusalOf<OutOfMemory>(ask).empty();
  }
  /// Ends the capture, and runs everything at once.
  void runAll() {
    graph.captureEnd();
    graph.replay(rig_.stream());
    for (const DeviceGraph body : ended_) {
      execs_.push_back(rig_.sim().instantiate(body).orThrow());
      rig_.sim().launchGraph(execs_.back(), rig_.stream()).orThrow();
    }
    CHECK(rig_.sim().races().empty());
    rig_.finish();
  }

 private:
  PoolRig& rig_;

 public:
  const Stream origin;
  Graph graph;

 private:
  const CaptureMode mode_;
  std::vector<DeviceGraph> ended_;
  std::vector<DeviceGraphExec> execs_;
};

}  // namespace

TEST_CASE("what a body has freed is not the outer stream's, also when the body has ended",
          "[pools]") {
  for (const bool ended : {false, true}) {
    for (const bool short_of_memory : {false, true}) {
      INFO((ended ? "ended" : "goes on") << (short_of_memory ? ", no room" : ""));
      PoolRig rig("background_thread:false");
      const Stream body = rig.stream();
      Bodies bodies(rig);
      bodies.begin(body);
      void* inside = rig.temporary(kInBody, body);
      if (ended) bodies.end(body);
      if (short_of_memory) rig.allocator.setLimit(kInBody + kMiB);
      if (short_of_memory) {
        CHECK(rig.outOfMemory(kInBody, bodies.origin));
      } else {
        CHECK(rig.temporary(kInBody, bodies.origin) != inside);
      }
      if (!ended) bodies.end(body);
      bodies.runAll();
    }
  }
}

TEST_CASE("a body reuses what it has freed itself, and nothing that the one before it has",
          "[pools]") {
  PoolRig rig;
  const Stream body = rig.stream();
  Bodies bodies(rig);
  std::set<void*> used;
  for (int i = 0; i < 3; ++i) {
    bodies.begin(body);
    void* block = rig.temporary(kInBody, body);
    CHECK(used.insert(block).second);
    CHECK(rig.temporary(kInBody, body) == block);
    CHECK(rig.temporary(kInBody / 2, body) == block);
    bodies.end(body);
  }
  bodies.runAll();
}

TEST_CASE("a block of one body that is freed after it, or in the next, is not the next one's",
          "[pools]") {
  for (const int when : {0, 1, 2}) {
    INFO("when " << when);
    PoolRig rig;
    const Stream body = rig.stream();
    Bodies bodies(rig);
    bodies.begin(body);
    void* first = rig.written(kInBody, body);
    bodies.end(body);
    if (when == 0) rig.free(first);
    bodies.begin(body);
    if (when == 1) rig.free(first);
    rig.touch(body, rig.allocate(512, body));
    if (when == 2) rig.free(first);
    CHECK(rig.temporary(kInBody, body) != first);
    bodies.end(body);
    bodies.runAll();
  }
}

TEST_CASE("what a body has freed does not come to the next by way of other work in the pool",
          "[pools]") {
  enum class Asks { kOtherMeanwhile, kOtherAfter, kOwnAfter };
  for (const Asks asks : {Asks::kOtherMeanwhile, Asks::kOtherAfter, Asks::kOwnAfter}) {
    INFO("asks " << int(asks));
    PoolRig rig("background_thread:false");
    const Stream body = rig.stream(), other = rig.stream();
    Bodies bodies(rig);
    bodies.begin(body);
    void* inside = rig.temporary(kInBody, body);
    const auto end_body = [&] {
      bodies.end(body);
      rig.work.delay(body, kLongNs);
    };
    if (asks != Asks::kOtherMeanwhile) end_body();
    rig.allocator.setLimit(kInBody + kMiB);
    CHECK(bodies.outOfMemoryBeside(kInBody, asks == Asks::kOwnAfter ? body : other));
    rig.allocator.setLimit(kGiB);
    if (asks == Asks::kOtherMeanwhile) end_body();
    rig.temporary(kInBody, other);  // a miss: what waits for the body's stream gets an event there
    bodies.begin(body);
    rig.sim().advanceHost(2 * kLongNs);
    CHECK(rig.temporary(kInBody, body) != inside);
    bodies.end(body);
    bodies.runAll();
  }
}

TEST_CASE("a stream that has the handle of one that recorded a body reuses nothing of it",
          "[pools]") {
  sim::SimConfig config = simOf(kGiB);
  config.reuse_streams = true;
  PoolRig rig("", config);
  const Stream gone = rig.stream();
  Bodies bodies(rig);
  bodies.begin(gone);
  void* inside = rig.temporary(kInBody, gone);
  bodies.end(gone);
  rig.allocator.forgetStream(gone);
  rig.sim().destroyStream(gone).orThrow();
  const Stream body = rig.stream();
  CHECK(body == gone);
  bodies.begin(body);
  CHECK(rig.temporary(kInBody, body) != inside);
  bodies.end(body);
  bodies.runAll();
}

TEST_CASE("streams of one body reuse each other's memory in its order", "[pools]") {
  PoolRig rig;
  const Stream body = rig.stream(), side = rig.stream();
  Bodies bodies(rig);
  bodies.graph.includeStream(side);
  void* before = nullptr;
  for (int i = 0; i < 2; ++i) {
    bodies.begin(body);
    void* block = rig.temporary(kInBody, body);
    CHECK(block != before);
    rig.join(side, body);
    CHECK(rig.temporary(kInBody, side) == block);
    CHECK(rig.temporary(kInBody, body) != block);  // does not follow side
    rig.join(body, side);
    bodies.end(body);
    before = block;
  }
  bodies.runAll();
}

TEST_CASE("a block that a body shares with the outer graph is nobody's before the capture is over",
          "[pools]") {
  for (const bool ends_first : {false, true}) {
    PoolRig rig;
    const Stream body = rig.stream();
    Bodies bodies(rig);
    bodies.begin(body);
    void* shared = rig.allocate(kInBody, bodies.origin);
    rig.allocator.recordStream(shared, body);
    rig.touch(body, rig.allocate(512, body));
    if (ends_first) bodies.end(body);
    rig.free(shared);
    if (!ends_first) bodies.end(body);
    CHECK(rig.temporary(kInBody, bodies.origin) != shared);
    bodies.begin(body);
    CHECK(rig.temporary(kInBody, body) != shared);
    bodies.end(body);
    bodies.runAll();
  }
}

TEST_CASE("a stream that recorded a body and then joins the outer capture begins anew", "[pools]") {
  PoolRig rig;
  const Stream body = rig.stream();
  Bodies bodies(rig);
  bodies.begin(body);
  void* inside = rig.temporary(kInBody, body);
  bodies.end(body);
  rig.join(body, bodies.origin);
  CHECK(rig.temporary(kInBody, body) != inside);
  rig.join(bodies.origin, body);
  bodies.runAll();
}

TEST_CASE("two bodies at once share nothing", "[pools]") {
  PoolRig rig;
  const Stream one = rig.stream(), two = rig.stream();
  Bodies bodies(rig);
  bodies.begin(one);
  bodies.begin(two);
  std::set<void*> used;
  for (const Stream stream : {one, two, bodies.origin}) {
    CHECK(used.insert(rig.temporary(kInBody, stream)).second);
  }
  for (const Stream stream : {one, two, bodies.origin}) {
    CHECK(used.contains(rig.temporary(kInBody, stream)));
  }
  bodies.end(one);
  bodies.end(two);
  bodies.runAll();
}

TEST_CASE("what bodies have used is free memory of the pool when the capture is over", "[pools]") {
  PoolRig rig;
  const Stream body = rig.stream();
  {
    Bodies bodies(rig);
    for (int i = 0; i < 3; ++i) {
      bodies.begin(body);
      rig.temporary(kInBody, body);
      bodies.end(body);
    }
    bodies.runAll();
    CHECK(rig.pools.memoryStats(bodies.graph.pool())[std::size_t(Stat::kActive)].current == 0);
  }
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

}  // namespace cistern::test
