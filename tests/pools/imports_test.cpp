// Memory of another process that is let go while something is captured: it goes afterwards.
#include <thread>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

/// Memory of one process that another opens, which captures meanwhile.
struct Opened {
  Opened() : theirs("backing:pages"), block(theirs.allocate(20 * kMiB, {})) {
    exported = theirs.allocator.exportBlock(block);
    rig.free(rig.allocate(512, s));  // the stream is known
    import = rig.allocator.openImport(exported->pages);
    unmapped = calls(Call::kUnmap);
    given_back = calls(Call::kFreeReservation);
  }
  ~Opened() { theirs.free(block); }

  std::uint64_t calls(Call call) { return countOf(rig.sim(), call); }
  /// As the thread of a garbage collector does.
  void letGo() {
    std::thread([this] { import.reset(); }).join();
  }
  bool isGone() {
    return calls(Call::kUnmap) - unmapped >= exported->pages.size() &&
           calls(Call::kFreeReservation) - given_back == 1;
  }
  bool isThere() { return calls(Call::kUnmap) == unmapped; }

  PoolRig theirs, rig;
  void* block;
  std::shared_ptr<const BlockExport> exported;
  std::shared_ptr<void> import;
  const Stream s = rig.stream();
  std::uint64_t unmapped = 0, given_back = 0;
};

}  // namespace

TEST_CASE("an import that is let go in a capture goes when the capture ends", "[pools]") {
  for (const CaptureMode mode :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    Opened opened;
    Graph graph(opened.rig.pools);
    graph.captureBegin(opened.s, {}, mode);
    opened.letGo();
    CHECK(opened.isThere());
    opened.rig.temporary(3 * kMiB, opened.s);
    graph.captureEnd();
    CHECK(opened.isGone());
    graph.replay(opened.s);
  }
}

TEST_CASE("an import that is let go in a capture of the program's own goes afterwards", "[pools]") {
  for (const int by : {0, 1, 2}) {
    CAPTURE(by);
    Opened opened;
    CachingAllocator& allocator = opened.rig.allocator;
    opened.rig.sim().beginCapture(opened.s, CaptureMode::kThreadLocal).orThrow();
    opened.letGo();
    allocator.emptyCache();
    CHECK(opened.isThere());
    const DeviceGraph graph = opened.rig.sim().endCapture(opened.s).orThrow();
    opened.rig.sim().destroyGraph(graph).orThrow();
    CHECK(opened.isThere());
    if (by == 0) allocator.emptyCache();
    if (by == 1) (void)allocator.openImport(opened.exported->pages);
    if (by == 2) {
      void* const held = allocator.allocate(600 * kMiB);
      CHECK_THROWS_AS(allocator.allocate(600 * kMiB), OutOfMemory);
      allocator.free(held);
    }
    CHECK(opened.calls(Call::kUnmap) - opened.unmapped >= opened.exported->pages.size());
    CHECK(opened.calls(Call::kFreeReservation) > opened.given_back);
  }
}

TEST_CASE("an import that the device does not unmap goes when it is asked again", "[pools]") {
  for (const Call call : {Call::kUnmap, Call::kFreeReservation, Call::kSynchronizeDevice}) {
    INFO(callName(call));
    Opened opened;
    opened.rig.sim().faults().failNth(call, 1, ErrorKind::kOther);
    opened.import.reset();
    opened.rig.allocator.emptyCache();
    const std::uint64_t tries = call == Call::kFreeReservation ? 2 : 1;
    CHECK(opened.calls(Call::kFreeReservation) - opened.given_back == tries);
    opened.theirs.free(opened.block);
    opened.block = nullptr;
    opened.exported.reset();
    opened.theirs.allocator.emptyCache();
    CHECK(takenOf(opened.rig.sim()) == 0);
  }
}

}  // namespace cistern::test
