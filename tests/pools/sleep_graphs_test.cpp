// Graphs whose pools sleep: they cannot be launched, and replay at the same addresses after wake.
#include "tests/pools/sleep_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kStepBytes = 4 * kMiB;

/// A graph that checks its input, writes a temporary, and writes its result.
struct SleepStep {
  SleepStep(SleepRig& with, void* of) : rig(with), input(of), graph(rig.pools) {
    GraphCapture capture(graph, rig.s, rig.id());
    rig.work.verify(rig.s, toAddress(input), kStepBytes, 1);
    void* const temporary = rig.allocate(kStepBytes, rig.s);
    rig.work.fill(rig.s, toAddress(temporary), kStepBytes, 2);
    rig.work.verify(rig.s, toAddress(temporary), kStepBytes, 2);
    rig.free(temporary);
    result = rig.allocate(kStepBytes, rig.s);
    rig.work.fill(rig.s, toAddress(result), kStepBytes, 3);
    capture.end();
  }
  SleepRig& rig;
  void* input;
  Graph graph;
  void* result = nullptr;
};

bool sleeps(Graph& graph, Stream stream) {
  return refusalOf<GraphError>([&] { graph.replay(stream); }).find("asleep") != std::string::npos;
}

}  // namespace

TEST_CASE("a graph replays at its addresses after its pool has slept", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const input = rig.filled(kStepBytes, 1);
  SleepStep step(rig, input);
  step.graph.replay(rig.s);
  for (int i = 0; i < 3; ++i) {
    (void)rig.pools.sleep({rig.id()});
    CHECK(rig.taken() == 0);
    rig.audit();
    CHECK(sleeps(step.graph, rig.s));
    (void)rig.pools.wake({rig.id()});
    rig.audit();
    CHECK(rig.wrong(step.result, kStepBytes, 3) == 0);
    step.graph.replay(rig.s);
    CHECK(rig.work.mismatches() == 0);
  }
  rig.free(step.result);
  rig.free(input);
}

TEST_CASE("a graph's results are saved, also when the program has freed them",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const input = rig.filled(kStepBytes, 1);
  SleepStep step(rig, input);
  rig.free(step.result);
  step.graph.replay(rig.s);
  const SleepReport report = rig.pools.sleep({rig.id()});
  CHECK(report.live == 2 * kStepBytes);
  (void)rig.pools.wake({rig.id()});
  CHECK(rig.wrong(step.result, kStepBytes, 3) == 0);
  CHECK(rig.pools.sleep({rig.id()}, Contents::kDrop).live == 0);
  (void)rig.pools.wake({rig.id()});
  rig.free(input);
}

TEST_CASE("a graph that is reset while its pool sleeps lets go", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const input = rig.filled(kStepBytes, 1);
  {
    SleepStep step(rig, input);
    step.graph.replay(rig.s);
    (void)rig.pools.sleep({rig.id()});
    step.graph.reset();
    rig.audit();
    rig.free(step.result);
  }
  CHECK(rig.pools.wake({rig.id()}).mapped < 3 * kStepBytes);
  rig.audit();
  CHECK(rig.wrong(input, kStepBytes, 1) == 0);
  rig.free(input);
  rig.pool.emptyCache();
  CHECK(rig.taken() == 0);
}

TEST_CASE("a graph that is part of another keeps that one from being launched",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const input = rig.filled(kStepBytes, 1);
  SleepStep step(rig, input);
  Graph outer(rig.pools), late(rig.pools);
  {
    GraphCapture capture(outer, rig.s);
    step.graph.replay(rig.s);
    capture.end();
  }
  outer.replay(rig.s);
  (void)rig.pools.sleep({rig.id()});
  CHECK(sleeps(outer, rig.s));
  {
    GraphCapture capture(late, rig.s);
    CHECK(sleeps(step.graph, rig.s));
  }
  (void)rig.pools.wake({rig.id()});
  outer.replay(rig.s);
  CHECK(rig.wrong(step.result, kStepBytes, 3) == 0);
  rig.free(step.result);
  rig.free(input);
}

TEST_CASE("a capture that took a graph in before its pool fell asleep is asleep too",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const input = rig.filled(kStepBytes, 1);
  SleepStep step(rig, input);
  Graph outer(rig.pools);
  const Stream other = rig.stream();
  GraphCapture capture(outer, other, {}, CaptureMode::kRelaxed);
  step.graph.replay(other);
  (void)rig.pools.sleep({rig.id()}, rig.s);
  capture.end();
  CHECK(sleeps(outer, rig.s));
  (void)rig.pools.wake({rig.id()});
  outer.replay(rig.s);
  CHECK(rig.work.mismatches() == 0);
  rig.free(step.result);
  rig.free(input);
}

TEST_CASE("a pool does not fall asleep while a graph of it is being launched",
          "[pools][sleep][pages]") {
  SleepRig rig;
  GraphMemory memory(rig.pools);
  rig.sim().beginCapture(rig.s, CaptureMode::kRelaxed).orThrow();
  memory.captureBegin(rig.s, rig.id());
  void* const block = rig.written(kStepBytes, rig.s);
  memory.captureEnd();
  const DeviceGraph graph = rig.sim().endCapture(rig.s).orThrow();
  const DeviceGraphExec exec = rig.sim().instantiate(graph).orThrow();
  {
    const GraphMemory::Launch launch(memory, rig.s);
    CHECK(refusedFor(rig.id(), "being launched", [&] { (void)rig.pools.sleep({rig.id()}); }));
    CHECK_FALSE(rig.pools.isAsleep(rig.id()));
    rig.sim().launchGraph(exec, rig.s).orThrow();
  }
  (void)rig.pools.sleep({rig.id()});
  CHECK_THROWS_AS(memory.launching(rig.s), GraphError);
  (void)rig.pools.wake({rig.id()});
  {
    const GraphMemory::Launch launch(memory, rig.s);
    rig.sim().launchGraph(exec, rig.s).orThrow();
  }
  rig.finish();
  memory.reset();
  rig.sim().destroyGraphExec(exec).orThrow();
  rig.sim().destroyGraph(graph).orThrow();
  rig.free(block);
}

TEST_CASE("pages that a graph reaches where they lay before are one page again after wake",
          "[pools][sleep][pages]") {
  SleepRig rig(simOf(kGiB), "page_size:2M");
  Graph first(rig.pools), second(rig.pools);
  void *hole = nullptr, *wide = nullptr;
  void* kept[4];
  {
    GraphCapture capture(first, rig.s, rig.id());
    void* passing[4];
    for (int i = 0; i < 4; ++i) {
      passing[i] = rig.allocate(8 * kMiB, rig.s);
      rig.work.fill(rig.s, toAddress(passing[i]), 8 * kMiB, 10);
      kept[i] = rig.filled(2 * kMiB, 20);
    }
    for (void* block : passing) rig.free(block);
    hole = passing[0];
    capture.end();
  }
  first.replay(rig.s);
  const std::uint64_t before = rig.allocator.memoryStats().pages.created;
  {
    GraphCapture capture(second, rig.s, rig.id());
    wide = rig.allocate(32 * kMiB, rig.s);
    rig.work.fill(rig.s, toAddress(wide), 32 * kMiB, 30);
    capture.end();
  }
  REQUIRE(rig.allocator.memoryStats().pages.created < before + 16);  // some pages have moved
  second.replay(rig.s);
  rig.finish();
  (void)rig.pools.sleep({rig.id()});
  rig.audit();
  CHECK(rig.taken() == 0);
  (void)rig.pools.wake({rig.id()});
  rig.audit();
  CHECK(rig.wrong(wide, 32 * kMiB, 30) == 0);
  first.replay(rig.s);  // writes through the old addresses
  CHECK(rig.wrong(hole, 8 * kMiB, 10) == 0);
  for (void* block : kept) CHECK(rig.wrong(block, 2 * kMiB, 20) == 0);
  CHECK(rig.wrong(wide, 32 * kMiB, 30) > 0);  // the same pages
  second.replay(rig.s);
  CHECK(rig.wrong(wide, 32 * kMiB, 30) == 0);
  for (void* block : kept) rig.free(block);
  rig.free(wide);
}

}  // namespace cistern::test
