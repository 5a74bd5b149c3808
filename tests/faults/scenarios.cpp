// What programs do, a little of everything. A step that needs what a failed one has not brought is
// left out.
#include <optional>

#include "tests/faults/worker.hpp"

namespace cistern::test {
namespace {

void plain(Worker& w) {
  for (const std::size_t bytes : {3 * kMiB, std::size_t{700}, 40 * kMiB, kMiB, 11 * kMiB}) {
    w.allocate(bytes, w.s);
    w.allocate(bytes + 4096, w.t);
  }
  while (w.held().size() > 3) w.free(w.held()[w.held().size() / 2]);
  w.allocate(30 * kMiB, w.s);
  w.allocate(60 * kMiB, w.t);
  w.tries([&] { (void)w.rig().allocator.memoryStats(); });
  w.tries([&] { (void)w.rig().allocator.cacheInfo(); });
  w.tries([&] { w.rig().allocator.emptyCache(); });
  w.freeAll();
  w.tries([&] { w.rig().allocator.emptyCache(); });
}

void acrossStreams(Worker& w) {
  for (int round = 0; round < 3; ++round) {
    void* large = w.allocate(24 * kMiB, w.s);
    void* small = w.allocate(2000, w.s);
    void* other = w.allocate(5 * kMiB, w.t);
    if (w.join(w.t, w.s)) {
      w.use(large, w.t);
      w.use(small, w.t);
      if (w.join(w.u, w.t)) w.use(large, w.u);
    }
    w.free(large);
    w.free(small);
    w.free(other);
    w.allocate(26 * kMiB, w.t);
    if (round == 1) w.sim().advanceHost(1'000'000);
    w.freeAll();
  }
  w.tries([&] { w.rig().allocator.emptyCache(); });
}

void capture(Worker& w, Graph& graph, MempoolId_t pool) {
  void* before = w.allocate(3 * kMiB, w.s);
  if (!w.tries([&] { graph.captureBegin(w.s, pool, CaptureMode::kRelaxed); })) return;
  const bool joined = w.join(w.t, w.s);
  void* first = w.allocate(5 * kMiB, w.s);
  if (joined && w.join(w.t, w.s)) w.use(first, w.t);
  w.free(first);
  w.free(w.allocate(9 * kMiB, w.s));
  if (joined) {
    void* other = w.allocate(5 * kMiB, w.t);
    if (w.join(w.s, w.t)) w.use(other, w.s);
    w.free(other);
    w.free(w.allocate(5 * kMiB, w.t));
    w.allocate(7 * kMiB, w.t);
  }
  for (int i = 0; i < 10; ++i) w.free(w.allocate(2000, w.s));
  w.free(before);
  if (joined) (void)w.join(w.s, w.t);
  if (!w.tries([&] { graph.captureEnd(); })) w.tries([&] { graph.abandon(); });
}

void captures(Worker& w) {
  MempoolId_t shared{};
  Graph first(w.rig().pools), second(w.rig().pools);
  capture(w, first, {});
  shared = first.pool();
  w.freeAll();
  if (shared != MempoolId_t{}) {
    capture(w, second, shared);
    w.tries([&] { first.replay(w.u); });
    w.tries([&] { second.replay(w.u); });
  }
  w.freeAll();
  w.tries([&] { first.reset(); });
  w.tries([&] { w.rig().allocator.emptyCache(); });
  w.tries([&] { second.reset(); });
  w.sim().advanceHost(1'000'000);
  w.tries([&] { w.rig().allocator.emptyCache(); });
}

// The body of a conditional node, which the device captures by itself.
void body(Worker& w, Graph& graph, Stream stream) {
  if (!w.sim().beginCapture(stream, CaptureMode::kRelaxed)) return;
  if (w.tries([&] { graph.includeStream(stream); })) {
    w.free(w.allocate(12 * kMiB, stream));
    w.allocate(4 * kMiB, stream);
    w.freeAll();
  }
  const Result<DeviceGraph> inside = w.sim().endCapture(stream);
  if (inside) (void)w.sim().destroyGraph(inside.value());
}

void bodies(Worker& w) {
  Graph graph(w.rig().pools), outer(w.rig().pools);
  if (!w.tries([&] { graph.captureBegin(w.s, {}, CaptureMode::kRelaxed); })) return;
  w.free(w.allocate(6 * kMiB, w.s));
  body(w, graph, w.t);
  body(w, graph, w.t);
  w.free(w.allocate(6 * kMiB, w.s));
  if (!w.tries([&] { graph.captureEnd(); })) w.tries([&] { graph.abandon(); });
  // A graph in a graph.
  if (w.tries([&] { outer.captureBegin(w.u, {}, CaptureMode::kRelaxed); })) {
    w.tries([&] { graph.replay(w.u); });
    w.tries([&] { graph.reset(); });
    if (!w.tries([&] { outer.captureEnd(); })) w.tries([&] { outer.abandon(); });
  }
  w.tries([&] { outer.replay(w.u); });
  w.tries([&] { outer.reset(); });
}

void abandoned(Worker& w) {
  Graph graph(w.rig().pools);
  if (!w.tries([&] { graph.captureBegin(w.s, {}, CaptureMode::kRelaxed); })) return;
  void* block = w.allocate(20 * kMiB, w.s);
  if (w.join(w.t, w.s)) w.use(block, w.t);
  w.free(block);
  w.allocate(kMiB, w.s);
  w.tries([&] { graph.abandon(); });
  w.freeAll();
}

void pools(Worker& w) {
  std::optional<MemPool> pool;
  MemPoolOptions lends;
  lends.use_on_oom = true;
  if (!w.tries([&] { pool.emplace(w.rig().pools, lends); })) return;
  std::optional<MemPoolScope> scope;
  if (w.tries([&] { scope.emplace(*pool); })) {
    void* first = w.allocate(3 * kMiB, w.s);
    void* second = w.allocate(20 * kMiB, w.t);
    if (w.join(w.t, w.s)) w.use(first, w.t);
    w.free(first);
    w.free(second);
  }
  w.tries([&] { scope.reset(); });
  const MempoolId_t id = pool->id();
  const Stream s = w.s;
  if (w.tries([&] {
        w.rig().pools.beginAllocateToPool(id,
                                          PoolFilter::streams([s](Stream x) { return x == s; }));
      })) {
    w.allocate(6 * kMiB, w.s);
    w.tries([&] { w.rig().pools.endAllocateToPool(id); });
  }
  w.allocate(200 * kMiB, w.u);
  w.allocate(30 * kMiB, w.u);
  w.freeAll();
  w.tries([&] { w.rig().pools.emptyCache(id); });
  w.tries([&] { pool.reset(); });
  w.tries([&] { w.rig().allocator.emptyCache(); });
}

// Without pages there is no such pool. Each page is some calls, so the blocks are small.
void hostMemory(Worker& w) {
  std::optional<MemPool> pool;
  MemPoolOptions in_host;
  in_host.location = Location::kHost;
  if (!w.tries([&] { pool.emplace(w.rig().pools, in_host); })) return;
  std::optional<MemPoolScope> scope;
  if (w.tries([&] { scope.emplace(*pool); })) {
    void* first = w.allocate(3 * kMiB, w.s);
    w.allocate(2000, w.t);
    if (w.join(w.t, w.s)) w.use(first, w.t);
    w.free(first);
    w.allocate(7 * kMiB, w.t);
  }
  w.tries([&] { scope.reset(); });
  w.allocate(3 * kMiB, w.s);
  for (void* block : w.held()) w.tries([&] { (void)w.rig().allocator.locationOf(block); });
  Graph graph(w.rig().pools);
  if (w.tries([&] { graph.captureBegin(w.u, pool->id(), CaptureMode::kRelaxed); })) {
    w.free(w.allocate(3 * kMiB, w.u));
    if (!w.tries([&] { graph.captureEnd(); })) w.tries([&] { graph.abandon(); });
  }
  w.tries([&] { graph.replay(w.s); });
  w.freeAll();
  w.tries([&] { pool.reset(); });
  w.tries([&] { graph.reset(); });
  w.sim().advanceHost(1'000'000);
  w.tries([&] { w.rig().allocator.emptyCache(); });
}

void checkpoints(Worker& w) {
  Pools& pools = w.rig().pools;
  std::optional<MemPool> pool;
  if (!w.tries([&] { pool.emplace(pools); })) return;
  const auto take = [&](std::size_t bytes) {
    std::optional<MemPoolScope> scope;
    if (w.tries([&] { scope.emplace(*pool); })) w.allocate(bytes, w.s);
    w.tries([&] { scope.reset(); });
  };
  take(3 * kMiB);
  take(5000);
  take(8 * kMiB);
  std::optional<PoolCheckpoint> then;
  w.tries([&] { then = pools.getCheckpointState(pool->id()); });
  if (w.held().size() > 1) w.free(w.held()[1]);
  take(6 * kMiB);
  if (then) {
    std::optional<CheckpointDelta> delta;
    w.tries([&] { delta = pools.setCheckpointPoolState(*then); });
    if (delta) w.replaceHeld(*delta);
    w.expect(pools.checkPoolLiveAllocations(pool->id(), {w.held().begin(), w.held().end()}));
  }
  w.freeAll();
  w.tries([&] { pool.reset(); });
}

void untilOutOfMemory(Worker& w) {
  for (int round = 0; round < 2; ++round) {
    while (w.held().size() < 20 && w.allocate(24 * kMiB, w.held().size() % 2 ? w.s : w.t)) {
    }
    if (!w.held().empty() && w.join(w.u, w.t)) w.use(w.held().front(), w.u);
    w.freeAll();
    w.allocate(180 * kMiB, w.u);
    w.freeAll();
  }
}

void forgotten(Worker& w) {
  for (int round = 0; round < 2; ++round) {
    const Result<Stream> made = w.sim().createStream();
    if (!made) continue;
    const Stream stream = made.value();
    void* own = w.allocate(4 * kMiB, stream);
    void* used = w.allocate(2000, w.s);
    if (w.join(stream, w.s)) w.use(used, stream);
    w.free(own);
    while (!w.tries([&] { w.rig().allocator.forgetStream(stream); })) w.relent();
    while (!w.sim().destroyStream(stream)) w.relent();
    w.free(used);
    w.allocate(5 * kMiB, w.t);
    w.freeAll();
  }
}

}  // namespace

const std::vector<Scenario> kScenarios = {
    {"plain", plain},
    {"across streams", acrossStreams},
    {"captures", captures},
    {"bodies of conditional nodes, graphs in graphs", bodies},
    {"a capture that is abandoned", abandoned},
    {"pools", pools},
    {"host memory", hostMemory},
    {"checkpoints", checkpoints},
    {"until out of memory", untilOutOfMemory},
    {"streams that are forgotten", forgotten},
};

}  // namespace cistern::test
