// The simulated device's captures from inside, where it is stricter than the contract, and when the
// calls that look there are made to fail.
#include <algorithm>
#include <filesystem>

#include "tests/device/sim_support.hpp"
#include "tests/support/temporary_file.hpp"

namespace cistern::test {
namespace {

std::vector<GraphNode> frontierOf(SimDevice& device, Stream stream) {
  std::vector<GraphNode> nodes;
  (void)device.captureFrontier(stream, nodes).orThrow();
  return nodes;
}

/// Records one piece of work; its node.
GraphNode recordNode(SimDevice& device, Stream stream, const std::string& name = "work") {
  launch(device, stream, name, {});
  return frontierOf(device, stream).at(0);
}

DeviceGraph capturedGraph(SimDevice& device, const std::string& name) {
  const Stream stream = newStream(device);
  const Stream branch = newStream(device);
  device.beginCapture(stream, CaptureMode::kRelaxed).orThrow();
  launch(device, stream, name, {});
  order(device, stream, branch);
  launch(device, branch, "right", {});
  order(device, branch, stream);
  launch(device, stream, "join", {});
  return device.endCapture(stream).orThrow();
}

}  // namespace

TEST_CASE("a node is valid as long as its capture, then its graph, is", "[sim][frontier]") {
  SimDevice device;
  const Stream stream = newStream(device);
  std::vector<GraphNode> nodes;
  device.beginCapture(stream, CaptureMode::kRelaxed).orThrow();
  const GraphNode node = recordNode(device, stream);
  CHECK(device.nodeDependencies(node, nodes).ok());
  CHECK(kindOf(device.nodeDependencies({node.raw + 1}, nodes)) == ErrorKind::kInvalidHandle);
  const DeviceGraph graph = device.endCapture(stream).orThrow();
  CHECK(device.nodeDependencies(node, nodes).ok());
  device.destroyGraph(graph).orThrow();
  CHECK(kindOf(device.nodeDependencies(node, nodes)) == ErrorKind::kInvalidHandle);
  CHECK(kindOf(device.dumpGraph(graph, "never written")) == ErrorKind::kInvalidHandle);
}

TEST_CASE("a node of a capture that was broken is refused", "[sim][frontier]") {
  SimDevice device;
  const Stream stream = newStream(device);
  std::vector<GraphNode> nodes;
  device.beginCapture(stream, CaptureMode::kGlobal).orThrow();
  const GraphNode node = recordNode(device, stream);
  CHECK_FALSE(device.malloc(kPage).ok());
  CHECK(kindOf(device.nodeDependencies(node, nodes)) == ErrorKind::kInvalidHandle);
  CHECK_FALSE(device.endCapture(stream).ok());
  CHECK(kindOf(device.nodeDependencies(node, nodes)) == ErrorKind::kInvalidHandle);
}

TEST_CASE("no node's handle is used again, on any device", "[sim][frontier]") {
  std::vector<GraphNode> seen;
  SimDevice first;
  SimDevice second;
  for (SimDevice* device : {&first, &second, &first}) {
    const Stream stream = newStream(*device);
    device->beginCapture(stream, CaptureMode::kRelaxed).orThrow();
    for (int i = 0; i < 3; ++i) seen.push_back(recordNode(*device, stream));
    device->destroyGraph(device->endCapture(stream).orThrow()).orThrow();
  }
  std::sort(seen.begin(), seen.end());
  CHECK(std::unique(seen.begin(), seen.end()) == seen.end());
}

TEST_CASE("a stream that is not alive has no frontier", "[sim][frontier]") {
  SimDevice device;
  const Stream stream = newStream(device);
  device.destroyStream(stream).orThrow();
  std::vector<GraphNode> nodes;
  CHECK(kindOf(device.captureFrontier(stream, nodes)) == ErrorKind::kInvalidHandle);
}

TEST_CASE("a graph launched into a capture leaves its last nodes as the frontier",
          "[sim][frontier]") {
  SimDevice device;
  const DeviceGraphExec exec = device.instantiate(capturedGraph(device, "fork")).orThrow();
  const Stream stream = newStream(device);
  device.beginCapture(stream, CaptureMode::kRelaxed).orThrow();
  const GraphNode before = recordNode(device, stream);
  device.launchGraph(exec, stream).orThrow();
  std::vector<GraphNode> nodes = frontierOf(device, stream);
  for (const std::size_t expected : {2U, 1U, 1U}) {  // join, then right and fork, then fork
    REQUIRE_FALSE(nodes.empty());
    device.nodeDependencies(GraphNode{nodes.back()}, nodes).orThrow();
    CHECK(nodes.size() == expected);
  }
  CHECK(nodes == std::vector{before});
  (void)device.endCapture(stream).orThrow();
}

TEST_CASE("a dumped graph names its work, streams and edges", "[sim][frontier]") {
  SimDevice device;
  const DeviceGraph graph = capturedGraph(device, "a \"quoted\" \\ name");
  const TemporaryFile file("graph.dot");
  device.dumpGraph(graph, file.path()).orThrow();
  const std::string text = file.content();
  const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
  CHECK(text.starts_with("digraph "));
  CHECK(has("node_0 [label=\"a \\\"quoted\\\" \\\\ name\\nstream "));
  CHECK(has("node_1 [label=\"right\\nstream "));
  CHECK(has("node_0 -> node_1;"));
  CHECK(has("node_0 -> node_2;"));
  CHECK(has("node_1 -> node_2;"));
  CHECK(text.ends_with("}\n"));
  CHECK(kindOf(device.dumpGraph(graph, file.path().string() + "/none/graph.dot")) ==
        ErrorKind::kInvalidValue);
}

TEST_CASE("looking into captures and graphs can be made to fail, and changes nothing",
          "[sim][frontier][fault]") {
  SimDevice device;
  const Stream stream = newStream(device);
  device.beginCapture(stream, CaptureMode::kGlobal).orThrow();
  const GraphNode first = recordNode(device, stream);
  const GraphNode second = recordNode(device, stream);
  std::vector<GraphNode> nodes = {GraphNode{1}};

  device.faults().failNth(Call::kCaptureFrontier, 1, ErrorKind::kOther);
  CHECK(kindOf(device.captureFrontier(stream, nodes)) == ErrorKind::kOther);
  device.faults().failNth(Call::kNodeDependencies, 1, ErrorKind::kOther);
  CHECK(kindOf(device.nodeDependencies(second, nodes)) == ErrorKind::kOther);
  CHECK(nodes == std::vector{GraphNode{1}});
  CHECK(frontierOf(device, stream) == std::vector{second});
  device.nodeDependencies(second, nodes).orThrow();
  CHECK(nodes == std::vector{first});

  const DeviceGraph graph = device.endCapture(stream).orThrow();
  const TemporaryFile file("graph.dot");
  device.faults().failNth(Call::kDumpGraph, 1, ErrorKind::kOther);
  CHECK(kindOf(device.dumpGraph(graph, file.path())) == ErrorKind::kOther);
  CHECK_FALSE(std::filesystem::exists(file.path()));
  device.dumpGraph(graph, file.path()).orThrow();
  CHECK(std::filesystem::exists(file.path()));
  CHECK(device.faults().hits() == 3);
  device.audit();
}

TEST_CASE("looking into captures and graphs is counted", "[sim][frontier]") {
  SimDevice device;
  std::vector<GraphNode> nodes;
  (void)device.captureFrontier(Stream{}, nodes);
  (void)device.nodeDependencies(GraphNode{}, nodes);
  (void)device.dumpGraph(DeviceGraph{}, "never written");
  const CallCounts counts = device.callCounts();
  for (const Call call : {Call::kCaptureFrontier, Call::kNodeDependencies, Call::kDumpGraph}) {
    CHECK(counts[std::size_t(call)] == 1);
    CHECK_FALSE(callName(call).empty());
  }
}

}  // namespace cistern::test
