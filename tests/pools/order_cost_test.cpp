// What following the graph's order costs, in calls to the device.
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

}  // namespace cistern::test
