// Which recorded work follows which.
#include <random>
#include <set>

#include "allocator/engine/capture/captured_streams.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

/// A capture of several streams that keeps book itself: all nodes that each node, and each stream's
/// next work, comes after.
class CaptureOrderRig {
 public:
  using Before = std::set<GraphNode>;

  explicit CaptureOrderRig(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) streams.push_back(sim.createStream().orThrow());
    before.resize(count);
    pasts.resize(count);
    sim.beginCapture(streams[0], CaptureMode::kRelaxed).orThrow();
    for (std::size_t i = 1; i < count; ++i) wait(i, 0);
  }
  ~CaptureOrderRig() {
    for (std::size_t i = 1; i < streams.size(); ++i) wait(0, i);
    sim.destroyGraph(sim.endCapture(streams[0]).orThrow()).orThrow();
  }
  CaptureOrderRig(const CaptureOrderRig&) = delete;
  CaptureOrderRig& operator=(const CaptureOrderRig&) = delete;

  GraphNode work(std::size_t on) {
    sim.launch(streams[on], {"work", {}, 10, nullptr}).orThrow();
    const GraphNode node = frontier(on).at(0);
    before[on].insert(node);
    nodes.push_back(node);
    return node;
  }
  void wait(std::size_t waiting, std::size_t first) {
    const Event event = sim.createEvent().orThrow();
    sim.recordEvent(event, streams[first]).orThrow();
    sim.waitEvent(streams[waiting], event).orThrow();
    sim.destroyEvent(event).orThrow();
    before[waiting].insert(before[first].begin(), before[first].end());
  }
  CaptureOrder::Nodes frontier(std::size_t of) {
    CaptureOrder::Nodes at;
    (void)sim.captureFrontier(streams[of], at).orThrow();
    return at;
  }
  CaptureOrder::Past& past(std::size_t of) {
    CHECK(order.extend(pasts[of], frontier(of)));
    return pasts[of];
  }
  bool follows(std::size_t stream, GraphNode node) { return past(stream).nodes.contains(node); }
  std::uint64_t lookedAt() { return countOf(sim, Call::kNodeDependencies); }

  sim::SimDevice sim{simOf(kGiB)};
  std::vector<Stream> streams;
  std::vector<Before> before;
  std::vector<CaptureOrder::Past> pasts;
  CaptureOrder::Nodes nodes;
  CaptureOrder order{sim};
};

}  // namespace

TEST_CASE("a stream follows what it has recorded, and what it has waited for by then",
          "[engine][part]") {
  CaptureOrderRig rig(2);
  const GraphNode first = rig.work(0);
  CHECK(rig.follows(0, first));
  CHECK_FALSE(rig.follows(1, first));
  rig.wait(1, 0);
  const GraphNode second = rig.work(0);
  CHECK(rig.follows(1, first));
  CHECK(rig.follows(0, second));
  CHECK_FALSE(rig.follows(1, second));
  const GraphNode other = rig.work(1);
  CHECK(rig.follows(1, other));
  CHECK_FALSE(rig.follows(0, other));
  rig.wait(0, 1);
  CHECK(rig.follows(0, other));
}

TEST_CASE("where nothing was recorded nothing is followed", "[engine][part]") {
  CaptureOrderRig rig(2);
  CHECK(rig.past(0).nodes.empty());
  const GraphNode untouched = rig.work(1);
  rig.work(0);
  CHECK_FALSE(rig.follows(0, untouched));
}

TEST_CASE("the device is asked once for each node, whatever is asked", "[engine][part]") {
  CaptureOrderRig rig(3);
  for (int i = 0; i < 30; ++i) rig.work(std::size_t(i % 3));
  for (const std::size_t stream : {1u, 2u}) rig.wait(0, stream);
  CHECK(rig.lookedAt() == 0);
  (void)rig.past(0);
  CHECK(rig.lookedAt() == 30);
  for (const std::size_t stream : {0u, 1u, 2u}) (void)rig.past(stream);
  CHECK(rig.lookedAt() == 30);
  rig.work(1);
  (void)rig.past(1);
  CHECK(rig.lookedAt() == 31);
}

TEST_CASE("what a device does not tell is not followed until it does", "[engine][part]") {
  CaptureOrderRig rig(1);
  CaptureOrder::Nodes nodes;
  for (int i = 0; i < 5; ++i) nodes.push_back(rig.work(0));
  CaptureOrder::Past past;
  for (std::size_t told = 0; told < 5; ++told) {
    rig.sim.faults().failNth(Call::kNodeDependencies, told == 0 ? 1 : 2, ErrorKind::kOther);
    CHECK_FALSE(rig.order.extend(past, rig.frontier(0)));
    CHECK(past.nodes.size() == told);
  }
  CHECK(rig.order.extend(past, rig.frontier(0)));
  for (const GraphNode node : nodes) CHECK(past.nodes.contains(node));
}

TEST_CASE("a chain of many nodes takes no deep stack", "[engine][part]") {
  CaptureOrderRig rig(1);
  const GraphNode first = rig.work(0);
  for (int i = 0; i < 3'000; ++i) rig.work(0);
  CHECK(rig.follows(0, first));
  CHECK(rig.past(0).nodes.size() == 3'001);
}

TEST_CASE("among random waits just what comes before is followed", "[engine][part]") {
  for (unsigned seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    CaptureOrderRig rig(4);
    for (int step = 0; step < 120; ++step) {
      const std::size_t a = random() % 4, b = random() % 4;
      random() % 3 ? void(rig.work(a)) : rig.wait(a, b);
      if (step % 10 != 0) continue;
      for (std::size_t stream = 0; stream < 4; ++stream) {
        const CaptureOrder::Past& past = rig.past(stream);
        for (const GraphNode node : rig.nodes)
          REQUIRE(past.nodes.contains(node) == rig.before[stream].contains(node));
      }
    }
  }
}

}  // namespace cistern::test
