// The race detector over graphs: their branches, their launches, and what they share.
#include "tests/device/race_support.hpp"

namespace cistern::test {

TEST_CASE("branches of a graph race unless its dependencies order them", "[sim][race]") {
  Bench b;
  b.device.beginCapture(b.first, CaptureMode::kRelaxed).orThrow();
  launch(b.device, b.first, "root", {writes(b.memory)});
  order(b.device, b.first, b.second);
  launch(b.device, b.first, "left", {writes(b.memory, 512)});
  launch(b.device, b.second, "right", {writes(b.memory + 512, 512)});
  SECTION("disjoint") {
    order(b.device, b.second, b.first);
    launch(b.device, b.first, "join", {reads(b.memory)});
    b.device.launchGraph(endAndInstantiate(b.device, b.first), b.first).orThrow();
    CHECK(b.races() == 0);
  }
  SECTION("overlapping") {
    launch(b.device, b.second, "stray", {reads(b.memory, 4)});
    order(b.device, b.second, b.first);
    const DeviceGraphExec exec = endAndInstantiate(b.device, b.first);
    CHECK(b.races() == 0);  // recorded only: nothing has touched memory yet
    b.device.launchGraph(exec, b.first).orThrow();
    REQUIRE(b.races() == 1);
    CHECK(b.device.races()[0].first.work == "left");
    CHECK(b.device.races()[0].second.work == "stray");
    CHECK(b.device.races()[0].second.stream == b.second);
  }
}

TEST_CASE("a graph is ordered after its stream, and its stream after it", "[sim][race]") {
  Bench b;
  b.device.beginCapture(b.first, CaptureMode::kRelaxed).orThrow();
  launch(b.device, b.first, "node", {writes(b.memory)});
  const DeviceGraphExec exec = endAndInstantiate(b.device, b.first);
  launch(b.device, b.second, "before", {writes(b.memory)});
  b.device.launchGraph(exec, b.second).orThrow();
  launch(b.device, b.second, "after", {writes(b.memory)});
  CHECK(b.races() == 0);
  launch(b.device, b.first, "elsewhere", {reads(b.memory)});
  CHECK(b.races() == 1);
}

TEST_CASE("launches of one graph are ordered, those of two that share memory are not",
          "[sim][race]") {
  Bench b;
  const auto capture = [&] {
    b.device.beginCapture(b.first, CaptureMode::kRelaxed).orThrow();
    launch(b.device, b.first, "node", {writes(b.memory)});
    return endAndInstantiate(b.device, b.first);
  };
  const DeviceGraphExec one = capture();
  b.device.launchGraph(one, b.first).orThrow();
  b.device.launchGraph(one, b.second).orThrow();
  CHECK(b.races() == 0);
  const DeviceGraphExec two = capture();
  SECTION("on one stream") { b.device.launchGraph(two, b.second).orThrow(); }
  SECTION("after a wait") {
    b.device.synchronizeStream(b.second).orThrow();
    b.device.launchGraph(two, b.first).orThrow();
  }
  CHECK(b.races() == 0);
  SECTION("at once") {
    b.device.launchGraph(two, b.first).orThrow();
    CHECK(b.races() == 1);
  }
}

TEST_CASE("a launch is ordered after whatever the launch before it was", "[sim][race]") {
  Bench b;
  b.device.beginCapture(b.first, CaptureMode::kRelaxed).orThrow();
  launch(b.device, b.first, "node", {});
  const DeviceGraphExec exec = endAndInstantiate(b.device, b.first);
  launch(b.device, b.first, "before", {writes(b.memory)});
  SECTION("launched on both streams, the graph carries the order") {
    b.device.launchGraph(exec, b.first).orThrow();
    b.device.launchGraph(exec, b.second).orThrow();
    launch(b.device, b.second, "after", {writes(b.memory)});
    CHECK(b.races() == 0);
  }
  SECTION("launched on the second stream alone, the graph carries none") {
    b.device.launchGraph(exec, b.second).orThrow();
    launch(b.device, b.second, "after", {writes(b.memory)});
    CHECK(b.races() == 1);
  }
}

TEST_CASE("a replay counts against unmapping until it is known to be complete", "[sim][race]") {
  Aliased a;
  a.device.beginCapture(a.first, CaptureMode::kRelaxed).orThrow();
  launch(a.device, a.first, "node", {writes(a.old_view)});
  const DeviceGraphExec exec = endAndInstantiate(a.device, a.first);
  SECTION("captured, never launched") {
    a.device.unmap(a.old_view, kPage).orThrow();
    CHECK(a.races() == 0);
    CHECK_FALSE(a.device.launchGraph(exec, a.first).ok());  // its address leads nowhere now
    CHECK(a.races() == 1);
  }
  SECTION("launched") {
    a.device.launchGraph(exec, a.first).orThrow();
    a.device.unmap(a.old_view, kPage).orThrow();
    CHECK(a.races() == 1);
  }
  SECTION("launched and waited for") {
    a.device.launchGraph(exec, a.first).orThrow();
    a.device.synchronizeStream(a.first).orThrow();
    a.device.unmap(a.old_view, kPage).orThrow();
    CHECK(a.races() == 0);
  }
}

TEST_CASE("forking and joining again and again needs no more lanes than the graph is wide",
          "[sim][race]") {
  std::vector<std::vector<sim::NodeId>> after = {{}};
  for (sim::NodeId fork = 0; fork < 300; fork += 3) {
    after.push_back({fork});
    after.push_back({fork});
    after.push_back({fork + 1, fork + 2});
  }
  const sim::GraphOrder order(after);
  CHECK(order.width() == 2);
  CHECK(order.sizeOf(0) + order.sizeOf(1) == after.size());
}

}  // namespace cistern::test
