// Workspaces and graph captures: a captured graph's come from its pool and go with it.
#include "cistern/handles/library.hpp"
#include "handles/workspaces.hpp"
#include "tests/handles/fake_library.hpp"
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kGraphBytes = 3 * kMiB;

struct GraphBlasTag {
  static constexpr const char* kName = "graph blas";
};
struct GraphBlas : FakeLibrary<GraphBlasTag> {
  static std::size_t workspaceBytes(int) { return kGraphBytes; }
  static void setWorkspace(Handle handle, void* memory, std::size_t size) {
    handle->workspace = memory;
    handle->workspace_bytes = size;
  }
};
FakeHandle* currentBlas() { return handles::currentHandle<GraphBlas>(); }

struct GraphRig : PoolRig {
  explicit GraphRig(sim::SimConfig config = simOf(kGiB)) : PoolRig("", std::move(config)) {
    setWorkspaceAllocator(0, &allocator);
  }
  ~GraphRig() { setWorkspaceAllocator(0, nullptr); }
};

}  // namespace

TEST_CASE("in a capture a workspace comes from the graph's pool, and goes when the graph is reset",
          "[workspace]") {
  GraphRig rig;
  const Stream s = rig.stream();
  const StreamGuard guard(s);
  void* const eager = currentBlas()->workspace;
  const std::int64_t before = nowOf(rig.allocator, Stat::kAllocatedBytes);
  Graph graph(rig.pools);
  void* captured = nullptr;
  {
    GraphCapture capture(graph, s);
    captured = currentBlas()->workspace;
    CHECK(currentBlas()->workspace == captured);
    capture.end();
  }
  CHECK(captured != eager);
  CHECK(rig.pools.checkPoolLiveAllocations(graph.pool(), {captured}));
  CHECK(currentBlas()->workspace == eager);
  graph.replay(s);
  graph.reset();
  CHECK(nowOf(rig.allocator, Stat::kAllocatedBytes) == before);
  CHECK(currentBlas()->workspace == eager);
}

TEST_CASE("a pool's workspace of a stream that is gone is not another's with its handle",
          "[workspace]") {
  sim::SimConfig config = simOf(kGiB);
  config.reuse_streams = true;
  GraphRig rig(config);
  {
    MemPool pool(rig.pools);
    const auto compute = [&](Stream on) {
      const MemPoolScope scope(pool);
      const StreamGuard guard(on);
      void* const workspace = currentBlas()->workspace;
      rig.touch(on, workspace);
      return workspace;
    };
    const Stream gone = rig.stream();
    rig.work.delay(gone, kLongNs);
    void* const before = compute(gone);
    clearWorkspaces(0, gone);
    rig.allocator.forgetStream(gone);
    rig.sim().destroyStream(gone).orThrow();
    const Stream fresh = rig.stream();
    REQUIRE(fresh == gone);
    CHECK(compute(fresh) != before);  // a graph of the pool may compute there
    CHECK(workspaceStatistics().front().count == 2);
    rig.sim().synchronizeDevice().orThrow();
  }
  CHECK(workspaceStatistics().empty());
  CHECK(rig.sim().races().empty());
}

TEST_CASE("a hundred captures and resets do not grow memory by their workspaces", "[workspace]") {
  GraphRig rig;
  const Stream s = rig.stream();
  const StreamGuard guard(s);
  (void)currentBlas();
  std::int64_t reserved = 0;
  for (int i = 0; i < 100; ++i) {
    Graph graph(rig.pools);
    GraphCapture capture(graph, s);
    rig.touch(s, currentBlas()->workspace);
    capture.end();
    graph.replay(s);
    rig.sim().synchronizeStream(s).orThrow();
    if (i == 2) reserved = reservedOf(rig.allocator);
  }
  CHECK(reservedOf(rig.allocator) <= reserved);
}

}  // namespace cistern::test
