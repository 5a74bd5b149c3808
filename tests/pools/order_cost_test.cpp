// What following the graph's order costs, in calls to the device.
#include <deque>

#include "tests/pools/unwind_support.hpp"

namespace cistern::test {

TEST_CASE("a capture on one stream asks for no node's dependencies", "[pools]") {
  constexpr int kSteps = kSlowBuild ? 500 : 5'000;
  PoolRig rig;
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s);
  for (std::size_t i = 0; i < kSteps; ++i) rig.temporary((1 + i % 37) * 100 * kKiB, s);
  capture.end();
  graph.replay(s);
  CHECK(countOf(rig.sim(), Call::kNodeDependencies) == 0);
}

TEST_CASE("a capture on three streams asks for each node's dependencies at most once", "[pools]") {
  constexpr std::size_t kNodes = kSlowBuild ? 1'000 : 20'000;
  PoolRig rig;
  const Stream s = rig.stream(), left = rig.stream(), right = rig.stream();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s);
  std::size_t nodes = 0;
  for (std::size_t fork = 0; nodes < kNodes; ++fork) {
    rig.join(left, s);
    rig.join(right, s);
    for (std::size_t i = 0; i < 4; ++i) {
      rig.temporary((1 + (fork + i) % 5) * kMiB, left);
      rig.temporary((1 + (fork + 2 * i) % 7) * kMiB, right);
      nodes += 2;
    }
    rig.join(s, left);
    rig.join(s, right);
    for (std::size_t i = 0; i < 2; ++i, ++nodes) rig.temporary((3 + fork % 11) * kMiB, s);
  }
  capture.end();
  const std::uint64_t asked = countOf(rig.sim(), Call::kNodeDependencies);
  CHECK(asked > 0);
  CHECK(asked <= nodes);
  graph.replay(s);
}

// The program of bench_graph_capture. The side streams take part of main's memory as guests, and
// then again what they have freed: two thirds through, all that they need is theirs.
TEST_CASE("a capture whose streams keep to what they have asks for nothing more",
          "[pools][pages]") {
  constexpr std::size_t kLayers = kSlowBuild ? 100 : 1'000, kKernels = 9 * kLayers;
  PoolRig rig("backing:pages", simOf(80 * kGiB));
  const Stream s = rig.stream();
  const Stream sides[] = {rig.stream(), rig.stream()};
  Graph graph(rig.pools);
  GraphCapture capture(graph, s);
  std::deque<void*> activations;
  std::uint64_t asked_early = 0;
  for (std::size_t layer = 0; layer < kLayers; ++layer) {
    if (layer == kLayers * 2 / 3) asked_early = countOf(rig.sim(), Call::kNodeDependencies);
    const Stream side = sides[layer % 2];
    activations.push_back(rig.allocate((8 + layer * 7 % 33) * kMiB, s));
    rig.join(side, s);
    for (std::size_t kernel = 0; kernel < 4; ++kernel) {
      void* mine = rig.allocate((1 + (layer + kernel) % 5) * 3 * kMiB, s);
      void* theirs = rig.allocate((1 + layer % 3) * 2 * kMiB + 64 * kKiB, side);
      rig.touch(s, mine);
      rig.touch(side, theirs);
      rig.free(theirs);
      rig.free(mine);
    }
    rig.join(s, side);
    rig.touch(s, activations.back());
    if (activations.size() <= 2) continue;
    rig.free(activations.front());
    activations.pop_front();
  }
  for (void* block : activations) rig.free(block);
  capture.end();
  if (!kSlowBuild) {
    CHECK(countOf(rig.sim(), Call::kNodeDependencies) == asked_early);
    CHECK(countOf(rig.sim(), Call::kCaptureFrontier) <= kKernels / 6);  // a mark asks all streams
  }
  graph.replay(s);
}

TEST_CASE("a capture on one stream never asks what the stream has reached", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s);
  for (std::size_t i = 0; i < 500; ++i) rig.temporary((1 + i % 37) * 100 * kKiB, s);
  CHECK(countOf(rig.sim(), Call::kCaptureFrontier) == 0);
  capture.end();
  graph.replay(s);
}

}  // namespace cistern::test
