// What n pools, blocks or graphs cost grows with n, not with its square: steps are counted.
#include <memory>
#include <vector>

#include "allocator/base/steps.hpp"
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

/// How many steps searches take in what `run` does.
template <class Run>
std::uint64_t stepsOf(Run run) {
  const std::uint64_t before = steps_searched;
  run();
  return steps_searched - before;
}

/// Steps of setting back half of n blocks.
std::uint64_t stepsToSetBack(std::size_t n, std::size_t bytes) {
  PoolRig rig("", simOf(n * bytes + 64 * kMiB));
  MemPool pool(rig.pools);
  const Stream s = rig.stream();
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < n; ++i) blocks.push_back(pool.allocate(bytes, s));
  const PoolCheckpoint checkpoint = rig.pools.getCheckpointState(pool.id());
  for (std::size_t i = 0; i < n; i += 2) rig.free(blocks[i]);
  const std::uint64_t steps = stepsOf([&] { (void)rig.pools.setCheckpointPoolState(checkpoint); });
  for (void* block : blocks) rig.free(block);
  return steps;
}

/// The same where the pages of that half serve one large block meanwhile.
std::uint64_t stepsToBringBack(std::size_t n) {
  PoolRig rig("page_size:2M", simOf(2 * n * kMiB));
  MemPool pool(rig.pools);
  const Stream s = rig.stream();
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < n; ++i) blocks.push_back(pool.allocate(2 * kMiB, s));
  const PoolCheckpoint checkpoint = rig.pools.getCheckpointState(pool.id());
  for (std::size_t i = 0; i < n; i += 2) rig.free(blocks[i]);
  (void)pool.allocate(n * kMiB, s);
  const std::uint64_t steps =
      stepsOf([&] { CHECK(rig.pools.setCheckpointPoolState(checkpoint).made.size() == n / 2); });
  rig.allocator.audit();
  for (void* block : blocks) rig.free(block);
  return steps;
}

/// Runs a program with n pools, and again with twice as many: in whole, steps grow as those do.
template <class Program>
void checkGrowth(Program program) {
  const std::uint64_t some = program(100), twice = program(200);
  INFO(some << " steps, then " << twice);
  CHECK(some >= 50);
  CHECK(twice <= 3 * some);
}

/// A pool each that holds a block.
struct ManyPools : PoolRig {
  explicit ManyPools(std::size_t n, std::string_view conf = "") : PoolRig(conf, simOf(64 * kGiB)) {
    for (std::size_t i = 0; i < n; ++i) pools_of.push_back(std::make_unique<MemPool>(pools));
  }
  void fill() {
    for (const auto& pool : pools_of) blocks.push_back(pool->allocate(kKiB, s));
  }
  void empty() {
    for (void* block : blocks) free(block);
    blocks.clear();
  }
  std::vector<MempoolId_t> ids() const {
    std::vector<MempoolId_t> all;
    for (const auto& pool : pools_of) all.push_back(pool->id());
    return all;
  }
  Stream s = stream();
  std::vector<std::unique_ptr<MemPool>> pools_of;
  std::vector<void*> blocks;
};

std::string_view anyBacking() { return GENERATE("", "backing:segments"); }

}  // namespace

TEST_CASE("the first allocation in each of n pools takes steps that grow with n", "[pools]") {
  const std::string_view conf = anyBacking();
  checkGrowth([&](std::size_t n) {
    ManyPools rig(n, conf);
    const std::uint64_t steps = stepsOf([&] { rig.fill(); });
    rig.empty();
    return steps;
  });
}

TEST_CASE("the ends of n pools take steps that grow with n", "[pools]") {
  const std::string_view conf = anyBacking();
  const bool held = GENERATE(false, true);
  checkGrowth([&](std::size_t n) {
    ManyPools rig(n, conf);
    rig.fill();
    if (!held) rig.empty();
    const std::uint64_t steps = stepsOf([&] { rig.pools_of.clear(); });
    rig.empty();
    rig.allocator.emptyCache();
    rig.allocator.emptyCache();
    CHECK(reservedOf(rig.allocator) == 0);
    return steps;
  });
}

TEST_CASE("sleep and wake of n pools with a graph each take steps that grow with n",
          "[pools][sleep][pages]") {
  checkGrowth([](std::size_t n) {
    ManyPools rig(n);
    rig.fill();
    std::vector<std::unique_ptr<Graph>> graphs;
    for (const MempoolId_t id : rig.ids()) {
      graphs.push_back(std::make_unique<Graph>(rig.pools));
      GraphCapture capture(*graphs.back(), rig.s, id);
      rig.free(rig.allocate(kKiB, rig.s));
      capture.end();
    }
    const std::uint64_t steps = stepsOf([&] {
      (void)rig.pools.sleep(rig.ids());
      (void)rig.pools.wake(rig.ids());
    });
    rig.empty();
    return steps;
  });
}

TEST_CASE("the ends of n pools that sleep take steps that grow with n", "[pools][sleep][pages]") {
  const bool held = GENERATE(false, true);
  checkGrowth([&](std::size_t n) {
    ManyPools rig(n);
    rig.fill();
    (void)rig.pools.sleep(rig.ids());
    if (!held) rig.empty();
    const std::uint64_t steps = stepsOf([&] {
      rig.pools_of.clear();
      rig.empty();
      rig.allocator.emptyCache();
      rig.allocator.emptyCache();
    });
    CHECK(rig.allocator.memoryStats()[Stat::kReservedBytes].current == 0);
    rig.allocator.audit();
    return steps;
  });
}

TEST_CASE("a pool begins and ends beside n that sleep in as many steps for any n",
          "[pools][sleep][pages]") {
  const auto besideSleepers = [](std::size_t n) {
    ManyPools rig(n);
    rig.fill();
    (void)rig.pools.sleep(rig.ids());
    const std::uint64_t steps = stepsOf([&] { MemPool one(rig.pools); });
    (void)rig.pools.wake(rig.ids());
    rig.empty();
    return steps;
  };
  CHECK(besideSleepers(20) == besideSleepers(200));
}

TEST_CASE("emptyCache with n draining pools takes steps that grow with n", "[pools]") {
  const std::string_view conf = anyBacking();
  checkGrowth([&](std::size_t n) {
    ManyPools rig(n, conf);
    rig.fill();
    rig.pools_of.clear();
    rig.empty();
    const std::uint64_t steps = stepsOf([&] {
      rig.allocator.emptyCache();
      rig.allocator.emptyCache();
    });
    CHECK(reservedOf(rig.allocator) == 0);
    rig.allocator.audit();
    return steps;
  });
}

TEST_CASE("n graphs in pools of their own take steps that grow with n", "[pools]") {
  checkGrowth([](std::size_t n) {
    PoolRig rig("", simOf(64 * kGiB));
    const Stream s = rig.stream();
    std::vector<std::unique_ptr<Graph>> graphs;
    return stepsOf([&] {
      for (std::size_t i = 0; i < n; ++i) {
        graphs.push_back(std::make_unique<Graph>(rig.pools));
        GraphCapture capture(*graphs.back(), s);
        rig.free(rig.allocate(kKiB, s));
        capture.end();
      }
      for (const auto& graph : graphs) graph->reset();
      rig.allocator.emptyCache();
      rig.allocator.emptyCache();
      CHECK(reservedOf(rig.allocator) == 0);
    });
  });
}

TEST_CASE("a miss beside n pools that do not lend takes as many steps for any n", "[pools]") {
  const std::string_view conf = anyBacking();
  const auto missBeside = [&](std::size_t n) {
    ManyPools rig(n, conf);
    rig.fill();
    const std::uint64_t steps = stepsOf([&] { rig.free(rig.allocate(30 * kMiB, rig.s)); });
    rig.empty();
    return steps;
  };
  CHECK(missBeside(10) == missBeside(200));
}

TEST_CASE("a misuse report of a pointer into one of n small blocks takes as many steps for any n",
          "[pools]") {
  const std::string_view conf = anyBacking();
  const auto report = [&](std::size_t n) {
    PoolRig rig(conf, simOf(kGiB));
    rig.allocator.setMisuseHook([](const Misuse&) {});
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < n; ++i) blocks.push_back(rig.allocate(2000, Stream{}));
    const std::uint64_t steps =
        stepsOf([&] { rig.free(static_cast<char*>(blocks[n - 10]) + kKiB); });
    for (void* block : blocks) rig.free(block);
    return steps;
  };
  CHECK(report(2000) <= 8);
  CHECK(report(100) <= 8);
}

TEST_CASE("setting back twice as many blocks takes twice as many steps", "[pools]") {
  const std::size_t bytes = GENERATE(std::size_t{2000}, std::size_t{2} * kMiB);
  const std::uint64_t some = stepsToSetBack(200, bytes), twice = stepsToSetBack(400, bytes);
  CHECK(some >= 100);
  CHECK(twice <= 3 * some);
}

TEST_CASE("bringing twice as many pages back takes twice as many steps", "[pools][pages]") {
  const std::uint64_t some = stepsToBringBack(100), twice = stepsToBringBack(200);
  CHECK(some >= 50);
  CHECK(twice <= 3 * some);
}

TEST_CASE("a capture of many streams asks a bounded number of questions for each block",
          "[pools]") {
  const std::size_t streams = GENERATE(std::size_t{64}, std::size_t{192});
  constexpr std::size_t kBlocks = 3'000;
  PoolRig rig("", simOf(64 * kGiB));
  std::vector<Stream> on;
  for (std::size_t i = 0; i < streams; ++i) on.push_back(rig.stream());
  Graph graph(rig.pools);
  GraphCapture capture(graph, on[0]);
  for (std::size_t i = 1; i < streams; ++i) rig.join(on[i], on[0]);
  for (const Stream stream : on) rig.free(rig.allocate(kMiB, stream));
  const std::uint64_t before = countOf(rig.sim(), Call::kCaptureFrontier);
  for (std::size_t i = 0; i < kBlocks; ++i) {
    void* const block = rig.allocate((1 + i * 7 % 24) * 100 * kKiB, on[i * 5 % streams]);
    rig.allocator.recordStream(block, on[i * 11 % streams]);
    rig.free(block);
  }
  CHECK(countOf(rig.sim(), Call::kCaptureFrontier) - before <= 100 * kBlocks);
  for (std::size_t i = 1; i < streams; ++i) rig.join(on[0], on[i]);
  capture.end();
}

// Small pages that have cost much make a miss give some back, and look for them.
TEST_CASE("a miss beside n busy streams makes a bounded number of calls", "[pools][pages]") {
  constexpr std::size_t kStreams = 5'000;
  PoolRig rig("backing:pages", simOf(1024 * kGiB));
  std::vector<Stream> on;
  for (std::size_t i = 0; i < kStreams; ++i) {
    on.push_back(rig.sim().createStream().orThrow());
    void* const block = rig.allocate(3 * kMiB, on.back());
    rig.sim().launch(on.back(), {"long", {}, 3'600'000'000'000, {}}).orThrow();
    rig.free(block);
  }
  const auto calls = [&] {
    std::uint64_t all = 0;
    for (const std::uint64_t count : rig.sim().callCounts()) all += count;
    return all;
  };
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint64_t before = calls();
    (void)rig.allocate((30 + i) * kMiB, on[0]);
    CHECK(calls() - before <= 1'000);
  }
  rig.finish();
}

}  // namespace cistern::test
