// The memory of a graph that the program captures and launches by itself.
#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

/// A program with its own calls of the runtime.
struct OwnCapture : PoolRig {
  void begin(Stream stream, MempoolId_t pool = {}) {
    sim().beginCapture(stream, CaptureMode::kGlobal).orThrow();
    memory.captureBegin(stream, pool);
  }
  void end(Stream stream) {
    memory.captureEnd();
    graph = sim().endCapture(stream).orThrow();
    exec = sim().instantiate(graph).orThrow();
  }
  void launch(Stream stream) {
    memory.launching(stream);
    sim().launchGraph(exec, stream).orThrow();
  }

  GraphMemory memory{pools};
  DeviceGraph graph;
  DeviceGraphExec exec;
};

}  // namespace

TEST_CASE("what a capture of the program's own allocates is its graph's", "[pools]") {
  OwnCapture rig;
  const Stream s = rig.stream();
  void* const eager = rig.temporary(kMiB, s);
  rig.begin(s);
  const MempoolId_t id = rig.memory.pool();
  CHECK(rig.memory.capturing());
  CHECK(id != MempoolId_t{});
  CHECK(rig.allocator.poolFor(s) == id);
  void* const first = rig.temporary(kMiB, s);
  CHECK(first != eager);
  CHECK(rig.temporary(kMiB, s) == first);  // in the capture's own order
  rig.end(s);
  CHECK(rig.allocator.poolFor(s) == MempoolId_t{});

  for (int i = 0; i < 3; ++i) rig.launch(s);
  CHECK(rig.temporary(kMiB, s) != first);
  rig.memory.reset();
  CHECK(rig.memory.pool() == MempoolId_t{});
  rig.finish();
  rig.pools.emptyCache({});
  CHECK(rig.sim().races().empty());
  CHECK(rig.sim().callsOnDeadStreams() == 0);
}

TEST_CASE("the memory of a program's own capture is nobody else's while launches are queued",
          "[pools]") {
  OwnCapture rig;
  const Stream s = rig.stream(), other = rig.stream();
  rig.begin(s);
  const Address captured = toAddress(rig.temporary(4 * kMiB, s));
  rig.end(s);
  rig.launch(other);
  rig.memory.reset();
  for (int i = 0; i < 4; ++i) rig.temporary(4 * kMiB, s);
  CHECK(captured != 0);
  CHECK(rig.sim().races().empty());
  rig.finish();
}

TEST_CASE("two captures of the program's own share a pool", "[pools]") {
  OwnCapture rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  rig.begin(s, pool.id());
  void* const first = rig.temporary(kMiB, s);
  rig.end(s);

  GraphMemory second(rig.pools);
  rig.sim().beginCapture(s, CaptureMode::kGlobal).orThrow();
  second.captureBegin(s, pool.id());
  CHECK(rig.temporary(kMiB, s) == first);
  CHECK(rig.pools.getPoolUseCount(pool.id()) == 3);
  second.captureEnd();
  const DeviceGraph graph = rig.sim().endCapture(s).orThrow();
  rig.sim().destroyGraph(graph).orThrow();
}

TEST_CASE("a capture that came to nothing leaves nothing", "[pools]") {
  OwnCapture rig;
  const Stream s = rig.stream();
  rig.begin(s);
  const MempoolId_t id = rig.memory.pool();
  rig.temporary(8 * kMiB, s);
  rig.sim().destroyGraph(rig.sim().endCapture(s).orThrow()).orThrow();
  rig.memory.captureEnd();  // after the capture's own end
  rig.memory.reset();
  rig.allocator.emptyCache();
  CHECK(rig.allocator.memoryStats()[Stat::kReservedBytes].current == 0);
  rig.allocator.emptyCache();  // looks again at what has drained
  CHECK_FALSE(rig.known(id));
}

TEST_CASE("a graph's memory goes with its object, whatever its state", "[pools]") {
  OwnCapture rig;
  const Stream s = rig.stream();
  for (const bool ended : {false, true}) {
    {
      GraphMemory memory(rig.pools);
      rig.sim().beginCapture(s, CaptureMode::kGlobal).orThrow();
      memory.captureBegin(s);
      rig.temporary(kMiB, s);
      if (ended) memory.captureEnd();
    }
    rig.sim().destroyGraph(rig.sim().endCapture(s).orThrow()).orThrow();
    CHECK(rig.allocator.poolFor(s) == MempoolId_t{});
  }
}

TEST_CASE("verbs of a graph's memory that its state does not allow", "[pools]") {
  OwnCapture rig;
  const Stream s = rig.stream();
  const auto refused = [](const std::string& state, auto verb) {
    return refusalOf<GraphError>(verb).find("the graph is " + state) != std::string::npos;
  };
  CHECK(refused("idle", [&] { rig.memory.captureEnd(); }));
  CHECK(refused("idle", [&] { rig.memory.launching(s); }));
  CHECK(refused("idle", [&] { rig.memory.includeStream(s); }));
  rig.memory.reset();
  CHECK(refusalOf<InvalidArgument>([&] {
          rig.memory.captureBegin(s);
        }).find("not being captured") != std::string::npos);
  CHECK_FALSE(rig.memory.capturing());
  rig.begin(s);
  CHECK(refused("capturing", [&] { rig.memory.captureBegin(s); }));
  CHECK(refused("capturing", [&] { rig.memory.launching(s); }));
  rig.memory.reset();
  CHECK(rig.memory.capturing());
  rig.end(s);
  CHECK(refused("captured", [&] { rig.memory.captureEnd(); }));
}

}  // namespace cistern::test
