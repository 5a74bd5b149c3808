// The device contract: what a capture tells of itself while it records, and a graph afterwards.
#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/device/contract_support.hpp"
#include "tests/support/temporary_file.hpp"

namespace cistern::test {
namespace {

using Nodes = std::set<GraphNode>;

/// A frontier or a node's dependencies, none of which may come twice.
Nodes distinct(const std::vector<GraphNode>& nodes) {
  Nodes set(nodes.begin(), nodes.end());
  CHECK(set.size() == nodes.size());
  return set;
}

Nodes frontierOf(Device& device, Stream stream) {
  std::vector<GraphNode> nodes = {GraphNode{1}};  // something to be replaced
  const CaptureInfo info = device.captureFrontier(stream, nodes).orThrow();
  const CaptureInfo same = device.captureInfo(stream).orThrow();
  CHECK(info.status == same.status);
  CHECK(info.id == same.id);
  return distinct(nodes);
}

Nodes dependenciesOf(Device& device, GraphNode node) {
  std::vector<GraphNode> nodes = {GraphNode{1}};
  device.nodeDependencies(node, nodes).orThrow();
  return distinct(nodes);
}

/// Fills some memory on `stream`; the one node that this recorded.
GraphNode fillNode(DeviceWork& work, Stream stream, Address memory) {
  work.fill(stream, memory, 512, 1);
  const Nodes frontier = frontierOf(work.device(), stream);
  REQUIRE(frontier.size() == 1);
  return *frontier.begin();
}

/// Makes `waiting` run after what is queued on `first`, by way of `event`.
void orderBy(Device& device, Event event, Stream first, Stream waiting) {
  device.recordEvent(event, first).orThrow();
  device.waitEvent(waiting, event).orThrow();
}

DeviceGraph end(Device& device, Stream stream) { return device.endCapture(stream).orThrow(); }

}  // namespace

CONTRACT_TEST("outside of a capture there is no frontier", "[contract][frontier]", work) {
  Device& device = work.device();
  ScopedStream stream(device);
  std::vector<GraphNode> nodes = {GraphNode{1}};
  const CaptureInfo info = device.captureFrontier(stream, nodes).orThrow();
  CHECK(info.status == CaptureStatus::kNone);
  CHECK(info.id == 0);
  CHECK(nodes.empty());
}

CONTRACT_TEST("the frontier is empty at first, then the last work of the stream, in every mode",
              "[contract][frontier]", work) {
  Device& device = work.device();
  ScopedMemory memory(device, kMiB);
  for (const auto mode : {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    ScopedStream stream(device);
    device.beginCapture(stream, mode).orThrow();
    CHECK(frontierOf(device, stream).empty());
    const GraphNode first = fillNode(work, stream, memory);
    const GraphNode second = fillNode(work, stream, memory);
    CHECK(first != second);
    CHECK(dependenciesOf(device, first).empty());
    CHECK(dependenciesOf(device, second) == Nodes{first});
    device.destroyGraph(end(device, stream)).orThrow();
    CHECK(frontierOf(device, stream).empty());
  }
}

CONTRACT_TEST("a stream that waits has what it waits for in its frontier, beside its own last work",
              "[contract][frontier]", work) {
  Device& device = work.device();
  ScopedStream origin(device);
  ScopedStream branch(device);
  ScopedEvent event(device);
  ScopedMemory memory(device, 2 * kMiB);
  device.beginCapture(origin, CaptureMode::kRelaxed).orThrow();
  const GraphNode fork = fillNode(work, origin, memory);
  orderBy(device, event, origin, branch);
  CHECK(frontierOf(device, branch) == Nodes{fork});
  const GraphNode left = fillNode(work, origin, memory);
  const GraphNode right = fillNode(work, branch, memory + kMiB);
  CHECK(frontierOf(device, origin) == Nodes{left});
  orderBy(device, event, branch, origin);
  CHECK(frontierOf(device, origin) == Nodes{left, right});
  CHECK(frontierOf(device, branch) == Nodes{right});
  const GraphNode join = fillNode(work, origin, memory);
  CHECK(dependenciesOf(device, join) == Nodes{left, right});
  CHECK(dependenciesOf(device, left) == Nodes{fork});
  CHECK(dependenciesOf(device, right) == Nodes{fork});
  device.destroyGraph(end(device, origin)).orThrow();
}

CONTRACT_TEST("an event marks the frontier of when it was recorded", "[contract][frontier]", work) {
  Device& device = work.device();
  ScopedStream origin(device);
  ScopedStream branch(device);
  ScopedEvent event(device);
  ScopedMemory memory(device, kMiB);
  device.beginCapture(origin, CaptureMode::kRelaxed).orThrow();
  const GraphNode before = fillNode(work, origin, memory);
  device.recordEvent(event, origin).orThrow();
  CHECK(frontierOf(device, origin) == Nodes{before});
  (void)fillNode(work, origin, memory);
  device.waitEvent(branch, event).orThrow();
  CHECK(frontierOf(device, branch) == Nodes{before});
  orderBy(device, event, branch, origin);
  device.destroyGraph(end(device, origin)).orThrow();
}

CONTRACT_TEST("a node that follows many names all of them", "[contract][frontier]", work) {
  Device& device = work.device();
  constexpr std::size_t kWide[] = {14, 15, 16, 17, 70};  // on both sides of what one call may hold
  ScopedMemory memory(device, kMiB);
  for (const std::size_t wide : kWide) {
    ScopedStream origin(device);
    ScopedEvent event(device);
    std::vector<std::unique_ptr<ScopedStream>> branches;
    for (std::size_t i = 0; i < wide; ++i) {
      branches.push_back(std::make_unique<ScopedStream>(device));
    }
    Nodes ends;
    device.beginCapture(origin, CaptureMode::kRelaxed).orThrow();
    (void)fillNode(work, origin, memory);
    for (std::size_t i = 0; i < wide; ++i) {
      orderBy(device, event, origin, *branches[i]);
      ends.insert(fillNode(work, *branches[i], memory + (i + 1) * 512));
    }
    ends.insert(fillNode(work, origin, memory));
    for (const auto& branch : branches) orderBy(device, event, *branch, origin);
    CHECK(frontierOf(device, origin) == ends);
    CHECK(dependenciesOf(device, fillNode(work, origin, memory)) == ends);
    device.destroyGraph(end(device, origin)).orThrow();
  }
}

CONTRACT_TEST("dependencies lead back to the start, also of a graph that is alive",
              "[contract][frontier]", work) {
  Device& device = work.device();
  constexpr int kLength = 20;
  ScopedStream stream(device);
  ScopedMemory memory(device, kMiB);
  device.beginCapture(stream, CaptureMode::kRelaxed).orThrow();
  std::vector<GraphNode> chain;
  for (int i = 0; i < kLength; ++i) chain.push_back(fillNode(work, stream, memory));
  const auto walk = [&] {
    GraphNode node = chain.back();
    for (std::size_t i = chain.size() - 1; i > 0; --i) {
      const Nodes before = dependenciesOf(device, node);
      REQUIRE(before == Nodes{chain[i - 1]});
      node = *before.begin();
    }
    CHECK(dependenciesOf(device, node).empty());
  };
  walk();
  const DeviceGraph graph = end(device, stream);
  walk();
  device.destroyGraph(graph).orThrow();
}

CONTRACT_TEST("two captures at once share no node", "[contract][frontier]", work) {
  Device& device = work.device();
  ScopedStream first(device);
  ScopedStream second(device);
  ScopedMemory memory(device, kMiB);
  device.beginCapture(first, CaptureMode::kRelaxed).orThrow();
  device.beginCapture(second, CaptureMode::kRelaxed).orThrow();
  CHECK(fillNode(work, first, memory) != fillNode(work, second, memory));
  device.destroyGraph(end(device, first)).orThrow();
  device.destroyGraph(end(device, second)).orThrow();
}

CONTRACT_TEST("a broken capture has no frontier", "[contract][frontier]", work) {
  if (needsStrictCaptures(work)) return;
  Device& device = work.device();
  ScopedStream stream(device);
  ScopedMemory memory(device, kMiB);
  device.beginCapture(stream, CaptureMode::kGlobal).orThrow();
  work.fill(stream, memory, 512, 1);
  CHECK_FALSE(device.malloc(kMiB).ok());
  std::vector<GraphNode> nodes = {GraphNode{1}};
  CHECK(device.captureFrontier(stream, nodes).orThrow().status == CaptureStatus::kInvalidated);
  CHECK(nodes.empty());
  CHECK_FALSE(device.endCapture(stream).ok());
}

CONTRACT_TEST("no node is an error, and changes nothing", "[contract][frontier]", work) {
  std::vector<GraphNode> nodes = {GraphNode{1}};
  CHECK_FALSE(work.device().nodeDependencies(GraphNode{}, nodes).ok());
  CHECK(nodes == std::vector{GraphNode{1}});
}

CONTRACT_TEST("a graph is dumped as a digraph, or refused where it cannot be written",
              "[contract][frontier]", work) {
  Device& device = work.device();
  ScopedStream stream(device);
  ScopedMemory memory(device, kMiB);
  device.beginCapture(stream, CaptureMode::kRelaxed).orThrow();
  (void)fillNode(work, stream, memory);
  (void)fillNode(work, stream, memory);
  const DeviceGraph graph = end(device, stream);
  const TemporaryFile file("graph.dot");
  const Status dumped = device.dumpGraph(graph, file.path());
  if (dumped.ok()) {
    const std::string text = file.content();
    CHECK(text.find("digraph") != std::string::npos);
    CHECK(text.find("->") != std::string::npos);
  } else {
    CHECK(dumped.error().kind == ErrorKind::kNotSupported);
    CHECK(device.backend() != "sim");
  }
  CHECK_FALSE(device.dumpGraph(graph, file.path().string() + "/no such folder/graph.dot").ok());
  device.destroyGraph(graph).orThrow();
}

}  // namespace cistern::test
