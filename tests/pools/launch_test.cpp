// A launch has two ends, and a living graph tells whether it is idle.
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

constexpr std::uint64_t kLaunchLag = 10'000'000;

/// A graph that the program captures itself, and work in it.
struct LaunchRig : PoolRig {
  LaunchRig() : PoolRig("", simOf(kGiB, kLaunchLag)), memory(pools), s(stream()) {
    sim().beginCapture(s, CaptureMode::kRelaxed).orThrow();
    memory.captureBegin(s);
    void* const block = written(4 * kMiB, s);
    free(block);
    memory.captureEnd();
    graph = sim().endCapture(s).orThrow();
    exec = sim().instantiate(graph).orThrow();
  }
  ~LaunchRig() {
    finish();
    memory.reset();
    sim().destroyGraphExec(exec).orThrow();
    sim().destroyGraph(graph).orThrow();
  }
  void launch() { sim().launchGraph(exec, s).orThrow(); }

  GraphMemory memory;
  Stream s;
  DeviceGraph graph;
  DeviceGraphExec exec;
};

}  // namespace

TEST_CASE("a graph is idle until it is launched, and again when that is complete", "[pools]") {
  LaunchRig rig;
  CHECK(rig.memory.idle());
  rig.memory.launching(rig.s);
  rig.launch();
  rig.memory.launched();
  CHECK_FALSE(rig.memory.idle());
  rig.finish();
  CHECK(rig.memory.idle());
}

TEST_CASE("a graph that is about to be launched is not idle, whatever its stream has done",
          "[pools]") {
  LaunchRig rig;
  {
    const GraphMemory::Launch launch(rig.memory, rig.s);
    CHECK_FALSE(rig.memory.idle());
    rig.finish();
    CHECK_FALSE(rig.memory.idle());
    rig.launch();
  }
  CHECK_FALSE(rig.memory.idle());
  rig.finish();
  CHECK(rig.memory.idle());
}

TEST_CASE("each launch of a graph is asked for anew", "[pools]") {
  LaunchRig rig;
  const Stream other = rig.stream();
  for (int i = 0; i < 5; ++i) {
    for (const Stream on : {rig.s, other}) {
      const GraphMemory::Launch launch(rig.memory, on);
      rig.sim().launchGraph(rig.exec, on).orThrow();
    }
    CHECK_FALSE(rig.memory.idle());
    if (i % 2 == 0) rig.finish();
    CHECK(rig.memory.idle() == (i % 2 == 0));
  }
}

TEST_CASE("a replay is over for the graph when it is complete", "[pools]") {
  PoolRig rig("", simOf(kGiB, kLaunchLag));
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  CHECK(refusalOf<GraphError>([&] { (void)graph.idle(); }).find("idle: the graph is idle") !=
        std::string::npos);
  {
    GraphCapture capture(graph, s);
    rig.free(rig.written(4 * kMiB, s));
    capture.end();
  }
  graph.replay(s);
  CHECK_FALSE(graph.idle());
  rig.finish();
  CHECK(graph.idle());
}

TEST_CASE("a launch that the device refuses has ended", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  {
    GraphCapture capture(graph, s);
    rig.free(rig.written(4 * kMiB, s));
    capture.end();
  }
  graph.instantiate();
  rig.sim().faults().failNth(Call::kLaunchGraph, 1);
  CHECK_THROWS_AS(graph.replay(s), DeviceFailure);
  rig.finish();
  CHECK(graph.idle());
}

}  // namespace cistern::test
