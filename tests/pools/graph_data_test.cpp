// Real data in graphs: those that share a pool are right in the order of their captures, those of
// separate pools at the same time, and what they have written stays when they are gone.
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kBytes = 4 * kMiB;

/// A graph with a temporary that it writes and checks, and an output that the program holds.
struct Step {
  Step(DeviceWork& with, Pools& of) : work(with), pools(of), graph(of) {}
  /// Captures, on `s`: check `input`, if any; then write and check a temporary; then the output.
  void capture(Stream s, MempoolId_t pool, const Step* input, std::uint32_t own_seed) {
    seed = own_seed;
    work.device().synchronizeDevice().orThrow();  // what is freed by now is free in the capture
    GraphCapture capture(graph, s, pool);
    CachingAllocator& allocator = pools.allocator();
    temporary = allocator.allocate(kBytes, s);
    work.fill(s, toAddress(temporary), kBytes, seed + 1);
    if (input) work.verify(s, toAddress(input->output), kBytes, input->seed);
    work.verify(s, toAddress(temporary), kBytes, seed + 1);
    allocator.free(temporary);
    output = allocator.allocate(kBytes, s);
    work.fill(s, toAddress(output), kBytes, seed);
    capture.end();
  }
  void check(Stream s) const { work.verify(s, toAddress(output), kBytes, seed); }

  DeviceWork& work;
  Pools& pools;
  Graph graph;
  void* temporary = nullptr;
  void* output = nullptr;
  std::uint32_t seed = 0;
};

template <class Test>
void onEachBackend(Test test) {
  forEachBackend([&](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    {
      Pools pools(allocator);
      const Streams streams(allocator, 2);
      // Real kernels are loaded at their first use, which a capture does not allow.
      void* warm = allocator.allocate(kBytes, streams[0]);
      work.fill(streams[0], toAddress(warm), kBytes, 1);
      work.verify(streams[0], toAddress(warm), kBytes, 1);
      work.delay(streams[0], 1'000);
      CHECK(work.mismatches() == 0);
      allocator.free(warm);
      test(work, allocator, pools, streams);
    }
    allocator.audit();
  });
}

}  // namespace

TEST_CASE("two graphs in one pool, replayed in order, are right and share memory",
          "[pools][gpu-too]") {
  onEachBackend(
      [](DeviceWork& work, CachingAllocator& allocator, Pools& pools, const Streams& streams) {
        const Stream s = streams[0];
        MemPool pool(pools);
        Step one(work, pools), two(work, pools);
        one.capture(s, pool.id(), nullptr, 1'000);
        allocator.free(one.output);
        two.capture(s, pool.id(), nullptr, 2'000);
        CHECK(two.temporary == one.temporary);
        for (int i = 0; i < 3; ++i) {
          one.graph.replay(s);
          two.graph.replay(s);
        }
        two.check(s);
        CHECK(work.mismatches() == 0);
        allocator.free(two.output);
      });
}

TEST_CASE("three graphs in one pool that pass results on are right in order", "[pools][gpu-too]") {
  onEachBackend(
      [](DeviceWork& work, CachingAllocator& allocator, Pools& pools, const Streams& streams) {
        const Stream s = streams[0];
        MemPool pool(pools);
        Step one(work, pools), two(work, pools), three(work, pools);
        one.capture(s, pool.id(), nullptr, 1'000);
        two.capture(s, pool.id(), &one, 2'000);
        allocator.free(one.output);  // from here on it is three's to write over
        three.capture(s, pool.id(), &two, 3'000);
        CHECK((three.temporary == one.output || three.output == one.output ||
               three.temporary == two.temporary || three.output == two.temporary));
        for (int i = 0; i < 3; ++i) {
          one.graph.replay(s);
          two.graph.replay(s);
          three.graph.replay(s);
          two.check(s);
          three.check(s);
        }
        CHECK(work.mismatches() == 0);
        allocator.free(two.output);
        allocator.free(three.output);
      });
}

TEST_CASE("graphs of separate pools, replayed at once, are right", "[pools][gpu-too]") {
  onEachBackend(
      [](DeviceWork& work, CachingAllocator& allocator, Pools& pools, const Streams& streams) {
        Step one(work, pools), two(work, pools);
        one.capture(streams[0], {}, nullptr, 1'000);
        two.capture(streams[0], {}, nullptr, 2'000);
        for (int i = 0; i < 20; ++i) {
          one.graph.replay(streams[0]);
          two.graph.replay(streams[1]);
        }
        one.check(streams[0]);
        two.check(streams[1]);
        CHECK(work.mismatches() == 0);
        allocator.free(one.output);
        allocator.free(two.output);
      });
}

TEST_CASE("a graph's output stays what it is after the graph and its pool are gone",
          "[pools][gpu-too]") {
  onEachBackend(
      [](DeviceWork& work, CachingAllocator& allocator, Pools& pools, const Streams& streams) {
        const Stream s = streams[0];
        void* output = nullptr;
        {
          Step step(work, pools);
          step.capture(s, {}, nullptr, 1'000);
          step.graph.replay(s);
          output = step.output;
        }
        allocator.emptyCache();
        void* other = allocator.allocate(kBytes, streams[1]);
        work.fill(streams[1], toAddress(other), kBytes, 9);
        work.verify(s, toAddress(output), kBytes, 1'000);
        CHECK(work.mismatches() == 0);
        allocator.free(output);
        allocator.free(other);
      });
}

TEST_CASE("a block that several streams of a graph read is right until they have joined",
          "[pools][gpu-too]") {
  onEachBackend(
      [](DeviceWork& work, CachingAllocator& allocator, Pools& pools, const Streams& streams) {
        const Stream s = streams[0];
        const Streams sides(allocator, 3);
        Graph graph(pools);
        GraphCapture capture(graph, s);
        const auto filled = [&](std::uint32_t seed) {
          void* block = allocator.allocate(kBytes, s);
          work.fill(s, toAddress(block), kBytes, seed);
          return block;
        };
        void* block = filled(1);
        for (std::size_t i = 0; i < sides.size(); ++i) {
          order(work.device(), sides[i], s);
          work.delay(sides[i], 200'000);
          work.verify(sides[i], toAddress(block), kBytes, 1);
          allocator.recordStream(block, sides[i]);
        }
        allocator.free(block);
        for (std::size_t i = 0; i < sides.size(); ++i) {
          allocator.free(filled(2));
          order(work.device(), s, sides[i]);
        }
        void *one = filled(3), *two = filled(4), *three = filled(5);
        work.verify(s, toAddress(one), kBytes, 3);
        work.verify(s, toAddress(two), kBytes, 4);
        work.verify(s, toAddress(three), kBytes, 5);
        for (void* each : {one, two, three}) allocator.free(each);
        capture.end();
        for (int i = 0; i < 3; ++i) graph.replay(s);
        CHECK(work.mismatches() == 0);
      });
}

TEST_CASE("graphs that share a pool and are replayed at once are reported as a race", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  MemPool pool(rig.pools);
  Graph one(rig.pools), two(rig.pools);
  for (Graph* graph : {&one, &two}) {
    GraphCapture capture(*graph, s, pool.id());
    rig.temporary(kBytes, s);
    capture.end();
  }
  one.replay(s);
  two.replay(s);
  rig.finish();
  CHECK(rig.sim().races().empty());
  one.replay(s);
  two.replay(t);
  REQUIRE(!rig.sim().races().empty());
  CHECK(rig.sim().races().front().kind == sim::RaceReport::Kind::kRace);
  rig.sim().clearRaces();
}

}  // namespace cistern::test
