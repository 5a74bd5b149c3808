// Workspaces: from the allocator, one for each (handle, stream, pool), bound when a handle is got.
#include "handles/workspaces.hpp"

#include <atomic>

#include "cistern/handles/library.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/handles/fake_library.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kBytes = 3 * kMiB;

struct BlasTag {
  static constexpr const char* kName = "blas";
};
/// Takes a workspace.
struct Blas : FakeLibrary<BlasTag> {
  static inline std::atomic<std::size_t> bytes{kBytes};
  static std::size_t workspaceBytes(int) { return bytes; }
  static void setWorkspace(Handle handle, void* memory, std::size_t size) {
    handle->workspace = memory;
    handle->workspace_bytes = size;
    ++handle->workspace_sets;
  }
};
FakeHandle* workspaceHandle() { return handles::currentHandle<Blas>(); }

/// An allocator on a simulated device, from which device 0's workspaces come.
struct Rig : SimRig {
  explicit Rig(std::string_view conf = "", sim::SimConfig config = simOf(kGiB))
      : SimRig(conf, std::move(config)) {
    setWorkspaceAllocator(0, &allocator);
  }
  ~Rig() { setWorkspaceAllocator(0, nullptr); }

  std::uint64_t allocated() const { return now(Stat::kAllocatedBytes); }
  std::uint64_t reserved() const { return now(Stat::kReservedBytes); }

 private:
  std::uint64_t now(Stat stat) const {
    return std::uint64_t(allocator.memoryStats().all[std::size_t(stat)].current);
  }
};

std::size_t fixedBytes(int) { return kBytes; }

handles::WorkspaceKey keyOf(const void* handle, Stream stream, WorkspacePool pool = {}) {
  return {0, pool, handle, stream};
}

}  // namespace

TEST_CASE("a handle comes with a workspace from the allocator", "[workspace]") {
  Rig rig;
  FakeHandle* const mine = workspaceHandle();
  CHECK(mine->workspace_bytes == kBytes);
  CHECK(rig.allocator.blockSize(mine->workspace) >= kBytes);
}

TEST_CASE("a workspace for the per-thread default stream is refused", "[workspace]") {
  Rig rig;
  constexpr Stream per_thread{2};
  const FakeHandle handle;
  CHECK_THROWS_AS(handles::workspaces().get(keyOf(&handle, per_thread), &fixedBytes, rig.allocator),
                  InvalidArgument);
  CHECK(rig.allocated() == 0);
}

TEST_CASE("a hit leaves the workspace alone", "[workspace]") {
  Rig rig;
  const int sets = workspaceHandle()->workspace_sets;
  for (int i = 0; i < 100; ++i) CHECK(workspaceHandle()->workspace_sets == sets);
}

TEST_CASE("each stream has a workspace of its own, and gets it again", "[workspace]") {
  Rig rig;
  const Stream a = rig.stream(), b = rig.stream();
  const auto workspaceOn = [](Stream stream) {
    const StreamGuard guard(stream);
    return workspaceHandle()->workspace;
  };
  void* const on_a = workspaceOn(a);
  void* const on_b = workspaceOn(b);
  CHECK(on_a != on_b);
  CHECK(workspaceOn(a) == on_a);
  CHECK(workspaceOn(b) == on_b);
}

TEST_CASE("a workspace that the program's own set-stream took away comes back", "[workspace]") {
  Rig rig;
  const Stream a = rig.stream();
  const StreamGuard guard(a);
  void* const workspace = workspaceHandle()->workspace;
  Blas::setStream(workspaceHandle(), Stream{});
  CHECK(workspaceHandle()->workspace == workspace);
}

TEST_CASE("switching streams a thousand times needs no more memory", "[workspace]") {
  Rig rig;
  const Stream streams[] = {rig.stream(), rig.stream(), rig.stream()};
  std::uint64_t once = 0;
  for (int i = 0; i < 1000; ++i) {
    const StreamGuard guard(streams[i % 3]);
    (void)workspaceHandle();
    if (i == 2) once = rig.allocated();
  }
  CHECK(rig.allocated() == once);
  CHECK(once >= 3 * kBytes);
}

TEST_CASE("without an allocator a handle keeps the library's own workspace", "[workspace]") {
  CHECK(workspaceHandle()->workspace == nullptr);
  CHECK(workspaceStatistics().empty());
}

TEST_CASE("an allocator that is taken away gets its workspaces back", "[workspace]") {
  Rig rig;
  FakeHandle* const mine = workspaceHandle();
  CHECK(mine->workspace != nullptr);
  setWorkspaceAllocator(0, nullptr);
  CHECK(rig.allocated() == 0);
  CHECK(workspaceHandle() == mine);
  CHECK(mine->workspace == nullptr);  // the library's own again
}

TEST_CASE("the allocator of another device is refused", "[workspace]") {
  SimRig rig;
  CHECK_THROWS_WITH(setWorkspaceAllocator(3, &rig.allocator),
                    "workspaces of device 3 from an allocator of device 0");
  CHECK_THROWS_AS(setWorkspaceAllocator(-1, nullptr), InvalidArgument);
  CHECK(workspaceAllocator(3) == nullptr);
  CHECK(workspaceAllocator(-1) == nullptr);
}

TEST_CASE("cleared workspaces are free at once, and come again", "[workspace]") {
  Rig rig;
  FakeHandle* const mine = workspaceHandle();
  clearWorkspaces(0);
  CHECK(rig.allocated() == 0);
  const int sets = mine->workspace_sets;
  CHECK(workspaceHandle()->workspace_sets == sets + 1);
  CHECK(rig.allocated() >= kBytes);
}

TEST_CASE("a stream's workspaces can be cleared before it goes, and others stay", "[workspace]") {
  Rig rig;
  const Stream stays = rig.stream(), goes = rig.stream();
  for (const Stream stream : {stays, goes}) {
    const StreamGuard guard(stream);
    (void)workspaceHandle();
  }
  clearWorkspaces(0, goes);
  REQUIRE(workspaceStatistics().size() == 1);
  CHECK(workspaceStatistics()[0].count == 1);
  rig.sim().destroyStream(goes).orThrow();
  const StreamGuard guard(stays);
  const int sets = workspaceHandle()->workspace_sets;
  CHECK(workspaceHandle()->workspace_sets == sets);
}

TEST_CASE("a size of zero leaves the library its own workspace", "[workspace]") {
  Rig rig;
  Blas::bytes = 0;
  CHECK(workspaceHandle()->workspace == nullptr);
  CHECK(rig.allocated() == 0);
  Blas::bytes = kBytes;
}

TEST_CASE("out of memory for a workspace is reported, and the next try works", "[workspace]") {
  Rig rig("", simOf(8 * kMiB));
  void* const rest = rig.allocator.allocate(6 * kMiB);
  const Stream stream = rig.stream();
  const StreamGuard guard(stream);
  CHECK_THROWS_AS(workspaceHandle(), OutOfMemory);
  CHECK_THROWS_AS(workspaceHandle(), OutOfMemory);
  CHECK(workspaceStatistics().empty());
  rig.allocator.free(rest);
  CHECK(workspaceHandle()->workspace_bytes == kBytes);
}

TEST_CASE("a reclaim callback may use the handle whose workspace is being made", "[workspace]") {
  Rig rig("", simOf(12 * kMiB));
  void* rest = rig.allocator.allocate(10 * kMiB);
  const Stream stream = rig.stream();
  void* within = nullptr;
  rig.allocator.registerReclaimCallback([&] {
    rig.allocator.free(std::exchange(rest, nullptr));
    const StreamGuard guard(stream);
    within = workspaceHandle()->workspace;
    return true;
  });
  const StreamGuard guard(stream);
  CHECK(workspaceHandle()->workspace == within);
  CHECK(rig.allocated() == rig.allocator.blockSize(within));
  setWorkspaceAllocator(0, nullptr);
  CHECK(rig.allocated() == 0);
}

TEST_CASE("a thread's workspace goes with its handle to the next thread on that stream",
          "[workspace]") {
  Rig rig;
  const Stream stream = rig.stream();
  void *first = nullptr, *second = nullptr;
  for (void** workspace : {&first, &second}) {
    onThread([&] {
      const StreamGuard guard(stream);
      *workspace = workspaceHandle()->workspace;
    });
  }
  CHECK(first != nullptr);
  CHECK(first == second);
}

TEST_CASE("a pool has workspaces of its own, which are freed when it is released", "[workspace]") {
  Rig rig;
  handles::Workspaces table;
  const int handle = 0;
  const Stream stream = rig.stream();
  const WorkspacePool graph{0, 1}, other{0, 2};
  const auto in = [&](WorkspacePool pool) {
    return table.get(keyOf(&handle, stream, pool), &fixedBytes, rig.allocator).memory;
  };
  void* const eager = in({});
  void* const captured = in(graph);
  CHECK(captured != eager);
  CHECK(in(graph) == captured);
  const std::uint64_t both = rig.allocated();
  table.releasePool(0, other);
  table.releasePool(1, graph);  // of another device
  CHECK(rig.allocated() == both);
  table.releasePool(0, graph);
  CHECK(rig.allocated() == both / 2);
  CHECK(in({}) == eager);
  table.clear(0);
  CHECK(rig.allocated() == 0);
}

TEST_CASE("captures that repeat in pools of their own do not grow memory", "[workspace]") {
  Rig rig;
  handles::Workspaces table;
  const int handle = 0;
  const Stream stream = rig.stream();
  std::uint64_t reserved = 0;
  for (std::uint64_t capture = 1; capture <= 200; ++capture) {
    (void)table.get(keyOf(&handle, stream, {0, capture}), &fixedBytes, rig.allocator);
    CHECK(rig.allocated() < 2 * kBytes);
    table.releasePool(0, {0, capture});
    CHECK(rig.allocated() == 0);
    if (capture == 1) reserved = rig.reserved();
  }
  CHECK(rig.reserved() == reserved);
}

TEST_CASE("a binding is made again after any workspace went, even where a pool's id is used again",
          "[workspace]") {
  Rig rig;
  (void)workspaceHandle();
  const std::uint64_t epoch = handles::workspaceEpoch();
  handles::workspaces().releasePool(0, {0, 5});
  CHECK(handles::workspaceEpoch() != epoch);
  const int sets = workspaceHandle()->workspace_sets;
  CHECK(workspaceHandle()->workspace_sets == sets);
}

TEST_CASE("statistics count workspaces by device and pool", "[workspace]") {
  Rig rig;
  handles::Workspaces table;
  const int handles_of_two[2] = {};
  const Stream stream = rig.stream();
  for (const int& handle : handles_of_two) {
    (void)table.get(keyOf(&handle, stream), &fixedBytes, rig.allocator);
  }
  (void)table.get(keyOf(&handles_of_two[0], stream, {0, 9}), &fixedBytes, rig.allocator);
  const std::vector<WorkspaceStats> found = table.statistics();
  REQUIRE(found.size() == 2);
  CHECK(found[0].pool == WorkspacePool{});
  CHECK(found[0].count == 2);
  CHECK(found[0].bytes == 2 * kBytes);
  CHECK(found[1].pool == WorkspacePool{0, 9});
  CHECK(found[1].count == 1);
  table.clear(0);
  CHECK(table.statistics().empty());
}

TEST_CASE("64 threads bind workspaces at once, each its own", "[workspace]") {
  Rig rig("", simOf(4 * kGiB));
  std::vector<Stream> streams;
  for (int t = 0; t < 64; ++t) streams.push_back(rig.stream());
  std::vector<void*> got(64);
  Gate gate(64);
  onThreads(64, [&](std::size_t t) {
    for (std::size_t i = 0; i < 50; ++i) {
      const StreamGuard guard(streams[i % 2 == 0 ? t : 0]);
      workspaceHandle()->use();
    }
    const StreamGuard guard(streams[t]);
    got[t] = workspaceHandle()->workspace;
    gate.pass();
  });
  CHECK(std::set<void*>(got.begin(), got.end()).size() == 64);
}

TEST_CASE("a library that finds no memory for a handle is given the cache's", "[workspace]") {
  Rig rig;
  rig.allocator.free(rig.allocator.allocate(30 * kMiB));
  CHECK(rig.reserved() > 0);
  int calls = 0;
  const auto fails_once = [&] { return ++calls == 1 ? 3 : 0; };
  CHECK(handles::callWithRoom(0, 0, fails_once) == 0);
  CHECK(calls == 2);
  CHECK(rig.reserved() == 0);
}

TEST_CASE("nothing is returned to the device for a library while the stream is capturing",
          "[workspace]") {
  Rig rig;
  rig.allocator.free(rig.allocator.allocate(30 * kMiB));
  const std::uint64_t reserved = rig.reserved();
  const Stream stream = rig.stream();
  const StreamGuard guard(stream);
  rig.sim().beginCapture(stream, CaptureMode::kThreadLocal).orThrow();
  int calls = 0;
  CHECK(handles::callWithRoom(0, 0, [&] { return ++calls, 3; }) == 3);
  CHECK(calls == 1);
  const DeviceGraph graph = rig.sim().endCapture(stream).orThrow();
  rig.sim().destroyGraph(graph).orThrow();
  CHECK(rig.reserved() == reserved);
}

TEST_CASE("a library's failure is told with the library, the call and its own words",
          "[workspace]") {
  const LibraryError error("cuBLAS", "cublasCreate", 3, "CUBLAS_STATUS_ALLOC_FAILED", "no room");
  CHECK(std::string(error.what()) ==
        "cuBLAS: cublasCreate failed: CUBLAS_STATUS_ALLOC_FAILED (3): no room");
  CHECK(error.code() == 3);
  const LibraryError bare("x", "xMake", 7, "", "");
  CHECK(std::string(bare.what()) == "x: xMake failed: status 7");
}

}  // namespace cistern::test
