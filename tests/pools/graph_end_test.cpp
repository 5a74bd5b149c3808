// All the ways in which the end of a capture can fail, and what is left then.
#include <functional>
#include <optional>
#include <thread>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

/// A capture into a live pool that something goes wrong with, and what must hold when it is over.
struct Ending {
  Ending() : pool(rig.pools), graph(rig.pools), s(rig.stream()) {
    capture.emplace(graph, s, pool.id());
  }

  bool refused() {
    return !refusalOf<DeviceFailure>([&] { capture->end(); }).empty();
  }
  bool refusedElsewhere() {
    bool refused_there = false;
    std::thread([&] { refused_there = refused(); }).join();
    return refused_there;
  }
  bool over() {
    return !graph.capturing() && graph.pool() == MempoolId_t{} && pool.useCount() == 1 &&
           rig.reservedBy(pool.id()) == 0 && rig.allocator.poolFor(s) == MempoolId_t{};
  }
  CaptureStatus status() { return rig.sim().captureInfo(s).orThrow().status; }
  /// The graph and its stream are as good as new.
  bool worksAgain() {
    graph.captureBegin(s, pool.id());
    rig.temporary(kMiB, s);
    graph.captureEnd();
    graph.replay(s);
    return graph.pool() == pool.id();
  }

  PoolRig rig;
  MemPool pool;
  Graph graph;
  const Stream s;
  std::optional<GraphCapture> capture;
};

}  // namespace

TEST_CASE("the end of a capture fails, and the capture is over", "[pools]") {
  using Trouble = std::function<void(Ending&)>;
  const std::pair<const char*, Trouble> troubles[] = {
      {"the device's call fails",
       [](Ending& e) { e.rig.sim().faults().failNth(Call::kEndCapture, 1, ErrorKind::kOther); }},
      {"broken by a call", [](Ending& e) { (void)e.rig.sim().synchronizeStream(e.s); }},
      {"a stream was not joined",
       [](Ending& e) {
         const Stream side = e.rig.stream();
         e.rig.join(side, e.s);
         e.rig.temporary(kMiB, side);
       }},
      {"ended by the program", [](Ending& e) {
         const DeviceGraph graph = e.rig.sim().endCapture(e.s).orThrow();
         e.rig.sim().destroyGraph(graph).orThrow();
       }}};
  for (const auto& [name, trouble] : troubles) {
    INFO(name);
    Ending ending;
    ending.rig.temporary(10 * kMiB, ending.s);
    trouble(ending);
    CHECK(ending.refused());
    CHECK(ending.over());
    CHECK(ending.status() == CaptureStatus::kNone);
    CHECK(ending.worksAgain());
    ending.capture.reset();  // is over: what has been captured since stays
    CHECK(ending.graph.pool() == ending.pool.id());
  }
}

TEST_CASE("a failed capture's scope does not abandon what the graph captures next", "[pools]") {
  Ending ending;
  ending.rig.sim().faults().failNth(Call::kEndCapture, 1, ErrorKind::kOther);
  CHECK(ending.refused());
  ending.graph.captureBegin(ending.s, ending.pool.id());
  ending.capture.reset();
  CHECK(ending.graph.capturing());
  ending.rig.temporary(kMiB, ending.s);
  ending.graph.captureEnd();
  ending.graph.replay(ending.s);
}

TEST_CASE("a thread that may not end a capture leaves it going on, for the one that may",
          "[pools]") {
  Ending ending;
  void* block = ending.rig.temporary(10 * kMiB, ending.s);
  CHECK(ending.refusedElsewhere());
  CHECK(ending.graph.capturing());
  CHECK(ending.rig.allocator.poolFor(ending.s) == ending.pool.id());
  CHECK(ending.rig.temporary(10 * kMiB, ending.s) == block);
  SECTION("which ends it") {
    ending.capture->end();
    ending.graph.replay(ending.s);
    CHECK(ending.graph.pool() == ending.pool.id());
  }
  SECTION("which leaves its scope") {
    ending.capture.reset();
    CHECK(ending.over());
    CHECK(ending.status() == CaptureStatus::kNone);
    CHECK(ending.worksAgain());
  }
}

TEST_CASE("a thread that may not end a broken capture leaves it to the one that may", "[pools]") {
  Ending ending;
  ending.rig.temporary(10 * kMiB, ending.s);
  (void)ending.rig.sim().synchronizeStream(ending.s);
  CHECK(ending.refusedElsewhere());
  CHECK(ending.graph.capturing());
  CHECK(ending.refused());
  CHECK(ending.over());
  CHECK(ending.status() == CaptureStatus::kNone);
  CHECK(ending.worksAgain());
}

TEST_CASE("a capture that is given up on a thread that may not end it is the device's alone",
          "[pools]") {
  Ending ending;
  ending.rig.temporary(10 * kMiB, ending.s);
  std::thread([&] { ending.capture.reset(); }).join();
  CHECK(ending.over());
  CHECK(ending.status() == CaptureStatus::kActive);
  ending.rig.sim().destroyGraph(ending.rig.sim().endCapture(ending.s).orThrow()).orThrow();
  CHECK(ending.worksAgain());
}

TEST_CASE("a second end of a capture is refused, and changes nothing", "[pools]") {
  Ending ending;
  ending.rig.temporary(kMiB, ending.s);
  ending.capture->end();
  CHECK_THROWS_AS(ending.capture->end(), GraphError);
  ending.capture.reset();
  CHECK(ending.graph.pool() == ending.pool.id());
  ending.graph.replay(ending.s);
}

}  // namespace cistern::test
