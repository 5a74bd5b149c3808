// The device contract: stream capture and graphs.
#include <thread>

#include "tests/device/contract_support.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {
namespace {

constexpr CaptureMode kModes[] = {CaptureMode::kGlobal, CaptureMode::kThreadLocal,
                                  CaptureMode::kRelaxed};

/// A graph made ready, destroyed at the end of the scope.
class ScopedGraph {
 public:
  /// Ends the capture on `stream`.
  ScopedGraph(Device& device, Stream stream) : device_(device) {
    const DeviceGraph graph = device.endCapture(stream).orThrow();
    exec_ = device.instantiate(graph).orThrow();
    device.destroyGraph(graph).orThrow();
  }
  ~ScopedGraph() {
    (void)device_.synchronizeDevice();
    (void)device_.destroyGraphExec(exec_);
  }
  ScopedGraph(const ScopedGraph&) = delete;
  ScopedGraph& operator=(const ScopedGraph&) = delete;
  void launch(Stream stream) { device_.launchGraph(exec_, stream).orThrow(); }

 private:
  Device& device_;
  DeviceGraphExec exec_;
};

CaptureStatus statusOf(Device& device, Stream stream) {
  return device.captureInfo(stream).orThrow().status;
}

void abandon(Device& device, Stream stream) {
  const auto ended = device.endCapture(stream);
  CHECK_FALSE(ended.ok());
  CHECK(statusOf(device, stream) == CaptureStatus::kNone);
}

}  // namespace

CONTRACT_TEST("a device without captures says that nothing is captured", "[contract]", work) {
  Device& device = work.device();
  if (device.captureSupported()) return;
  std::vector<GraphNode> nodes{GraphNode{1}};
  CHECK(statusOf(device, Stream{}) == CaptureStatus::kNone);
  CHECK(device.captureFrontier(Stream{}, nodes).orThrow().status == CaptureStatus::kNone);
  CHECK(nodes.empty());
  CHECK(device.exchangeCaptureMode(CaptureMode::kGlobal).orThrow() == CaptureMode::kRelaxed);
  CHECK(device.beginCapture(Stream{}, CaptureMode::kRelaxed).error().kind ==
        ErrorKind::kNotSupported);
}

CONTRACT_TEST("captured work runs when its graph is launched, each time", "[contract][capture]",
              work) {
  Device& device = work.device();
  ScopedStream stream(device);
  ScopedMemory memory(device, kMiB);
  work.fill(stream, memory, kMiB, 1);
  device.beginCapture(stream, CaptureMode::kGlobal).orThrow();
  work.fill(stream, memory, kMiB, 2);
  ScopedGraph graph(device, stream);
  work.verify(stream, memory, kMiB, 1);
  for (std::uint32_t round = 3; round < 6; ++round) {
    graph.launch(stream);
    work.verify(stream, memory, kMiB, 2);
    work.fill(stream, memory, kMiB, round);
    work.verify(stream, memory, kMiB, round);
  }
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("captureInfo tells captures apart", "[contract][capture]", work) {
  Device& device = work.device();
  ScopedStream first(device);
  ScopedStream second(device);
  CHECK(statusOf(device, first) == CaptureStatus::kNone);
  CHECK(device.captureInfo(first).orThrow().id == 0);
  device.beginCapture(first, CaptureMode::kRelaxed).orThrow();
  device.beginCapture(second, CaptureMode::kRelaxed).orThrow();
  const CaptureInfo one = device.captureInfo(first).orThrow();
  const CaptureInfo two = device.captureInfo(second).orThrow();
  CHECK(one.status == CaptureStatus::kActive);
  CHECK(one.id != 0);
  CHECK(one.id != two.id);
  device.destroyGraph(device.endCapture(second).orThrow()).orThrow();
  CHECK(statusOf(device, second) == CaptureStatus::kNone);
  device.destroyGraph(device.endCapture(first).orThrow()).orThrow();
  CHECK_FALSE(device.endCapture(first).ok());
}

CONTRACT_TEST("no capture records the default stream", "[contract][capture]", work) {
  Device& device = work.device();
  const Result<CaptureInfo> info = device.captureInfo(Stream{});
  REQUIRE(info.ok());
  CHECK(info.value().status == CaptureStatus::kNone);
  std::vector<GraphNode> frontier;
  CHECK(device.captureFrontier(Stream{}, frontier).orThrow().status == CaptureStatus::kNone);
}

CONTRACT_TEST("each stream of a capture has the capture's id", "[contract][capture]", work) {
  Device& device = work.device();
  ScopedStream origin(device);
  ScopedStream branch(device);
  ScopedStream other(device);
  ScopedEvent forked(device);
  ScopedEvent joined(device);
  ScopedMemory memory(device, kMiB);
  device.beginCapture(other, CaptureMode::kRelaxed).orThrow();
  device.beginCapture(origin, CaptureMode::kRelaxed).orThrow();
  const std::uint64_t id = device.captureInfo(origin).orThrow().id;
  CHECK(device.captureInfo(other).orThrow().id != id);
  for (int times = 0; times < 2; ++times) {
    work.fill(origin, memory, kMiB, 5);
    device.recordEvent(forked, origin).orThrow();
    device.waitEvent(branch, forked).orThrow();
    CHECK(device.captureInfo(branch).orThrow().id == id);
    work.fill(branch, memory, kMiB, 6);
    std::vector<GraphNode> frontier;
    CHECK(device.captureFrontier(branch, frontier).orThrow().id == id);
  }
  device.recordEvent(joined, branch).orThrow();
  device.waitEvent(origin, joined).orThrow();
  device.destroyGraph(device.endCapture(origin).orThrow()).orThrow();
  device.destroyGraph(device.endCapture(other).orThrow()).orThrow();
}

CONTRACT_TEST("a stream that waits for captured work joins the capture", "[contract][capture]",
              work) {
  if (needsStrictCaptures(work)) return;
  Device& device = work.device();
  ScopedStream origin(device);
  ScopedStream branch(device);
  ScopedEvent forked(device);
  ScopedEvent joined(device);
  ScopedMemory memory(device, 2 * kMiB);
  device.beginCapture(origin, CaptureMode::kGlobal).orThrow();
  work.fill(origin, memory, 2 * kMiB, 5);
  device.recordEvent(forked, origin).orThrow();
  device.waitEvent(branch, forked).orThrow();
  work.delay(branch, 10'000'000);
  work.fill(branch, memory, kMiB, 6);
  work.fill(origin, memory + kMiB, kMiB, 7);
  device.recordEvent(joined, branch).orThrow();
  device.waitEvent(origin, joined).orThrow();
  work.verify(origin, memory, kMiB, 6);
  work.verify(origin, memory + kMiB, kMiB, 7);
  ScopedGraph graph(device, origin);
  CHECK(statusOf(device, branch) == CaptureStatus::kNone);
  for (int i = 0; i < 3; ++i) graph.launch(origin);
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("a capture with a branch that was not joined fails, and has ended",
              "[contract][capture]", work) {
  if (needsStrictCaptures(work)) return;
  Device& device = work.device();
  ScopedStream origin(device);
  ScopedStream branch(device);
  ScopedEvent forked(device);
  ScopedMemory memory(device, kMiB);
  device.beginCapture(origin, CaptureMode::kGlobal).orThrow();
  work.fill(origin, memory, kMiB, 5);
  device.recordEvent(forked, origin).orThrow();
  device.waitEvent(branch, forked).orThrow();
  work.fill(branch, memory, kMiB, 6);
  abandon(device, origin);
  CHECK(statusOf(device, branch) == CaptureStatus::kNone);
  work.fill(branch, memory, kMiB, 8);
  work.verify(branch, memory, kMiB, 8);
  CHECK(work.mismatches() == 0);
}

CONTRACT_TEST("malloc and queryEvent break a capture unless the thread is relaxed",
              "[contract][capture]", work) {
  if (needsStrictCaptures(work)) return;
  Device& device = work.device();
  ScopedStream stream(device);
  ScopedEvent event(device);
  device.recordEvent(event, Stream{}).orThrow();
  device.synchronizeEvent(event).orThrow();
  for (const CaptureMode mode : {CaptureMode::kGlobal, CaptureMode::kThreadLocal}) {
    device.beginCapture(stream, mode).orThrow();
    CHECK(device.malloc(kMiB).error().kind == ErrorKind::kCaptureForbidden);
    CHECK(statusOf(device, stream) == CaptureStatus::kInvalidated);
    CHECK(device.endCapture(stream).error().kind == ErrorKind::kCaptureInvalidated);

    device.beginCapture(stream, mode).orThrow();
    CHECK(device.queryEvent(event).error().kind == ErrorKind::kCaptureForbidden);
    CHECK(device.endCapture(stream).error().kind == ErrorKind::kCaptureInvalidated);

    device.beginCapture(stream, mode).orThrow();
    Address memory = 0;
    {
      RelaxedCaptureMode relaxed(device);
      memory = device.malloc(kMiB).orThrow();
      CHECK(device.queryEvent(event).orThrow());
    }
    CHECK(statusOf(device, stream) == CaptureStatus::kActive);
    device.destroyGraph(device.endCapture(stream).orThrow()).orThrow();
    device.free(memory).orThrow();
  }
}

CONTRACT_TEST("virtual memory calls are legal during a capture in every mode",
              "[contract][capture]", work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  for (const CaptureMode mode : kModes) {
    ScopedPages pages(device);
    ScopedStream stream(device);
    const std::uint64_t unit = pages.granularity();
    device.beginCapture(stream, mode).orThrow();
    const Address range = pages.reserve(2 * unit);
    pages.map(range, unit, pages.page(unit));
    pages.map(range + unit, unit, pages.page(unit));
    pages.unmap(range + unit, unit);
    CHECK(device.memoryInfo().ok());
    work.fill(stream, range, unit, 4);
    ScopedGraph graph(device, stream);
    graph.launch(stream);
    work.verify(stream, range, unit, 4);
    CHECK(work.mismatches() == 0);
  }
}

CONTRACT_TEST("events of streams that are not captured can be used during a capture",
              "[contract][capture]", work) {
  Device& device = work.device();
  for (const CaptureMode mode : kModes) {
    ScopedStream captured(device);
    ScopedStream first(device);
    ScopedStream second(device);
    ScopedEvent event(device);
    device.beginCapture(captured, mode).orThrow();
    device.recordEvent(event, first).orThrow();
    device.waitEvent(second, event).orThrow();
    CHECK(statusOf(device, second) == CaptureStatus::kNone);
    device.destroyGraph(device.endCapture(captured).orThrow()).orThrow();
  }
}

CONTRACT_TEST("a thread-local capture forbids nothing to other threads", "[contract][capture]",
              work) {
  Device& device = work.device();
  ScopedStream stream(device);
  device.beginCapture(stream, CaptureMode::kThreadLocal).orThrow();
  bool served = false;
  Address memory = 0;
  std::thread([&] {
    const auto got = device.malloc(kMiB);
    served = got.ok();
    if (served) memory = got.value();
  }).join();
  CHECK(served);
  device.destroyGraph(device.endCapture(stream).orThrow()).orThrow();
  if (served) device.free(memory).orThrow();
}

CONTRACT_TEST("a global capture forbids malloc to every thread that is not relaxed",
              "[contract][capture]", work) {
  if (needsStrictCaptures(work)) return;
  Device& device = work.device();
  ScopedStream stream(device);
  device.beginCapture(stream, CaptureMode::kGlobal).orThrow();
  bool relaxed_served = false;
  bool served = true;
  Address memory = 0;
  std::thread([&] {
    {
      RelaxedCaptureMode relaxed(device);
      const auto got = device.malloc(kMiB);
      relaxed_served = got.ok();
      if (got.ok()) memory = got.value();
    }
    served = device.malloc(kMiB).ok();
  }).join();
  CHECK(relaxed_served);
  CHECK_FALSE(served);
  abandon(device, stream);
  if (relaxed_served) device.free(memory).orThrow();
}

CONTRACT_TEST("exchanging the capture mode returns the one before", "[contract][capture]", work) {
  Device& device = work.device();
  CHECK(device.exchangeCaptureMode(CaptureMode::kRelaxed).orThrow() == CaptureMode::kGlobal);
  CHECK(device.exchangeCaptureMode(CaptureMode::kThreadLocal).orThrow() == CaptureMode::kRelaxed);
  CHECK(device.exchangeCaptureMode(CaptureMode::kGlobal).orThrow() == CaptureMode::kThreadLocal);
}

CONTRACT_TEST("a graph binds addresses, not the pages behind them", "[contract][capture]", work) {
  Device& device = work.device();
  if (!device.virtualMemory().supported) return skipped("no pages on " + device.backend());
  ScopedPages pages(device);
  ScopedStream stream(device);
  const std::uint64_t unit = pages.granularity();
  const Address range = pages.reserve(unit);
  const Address window = pages.reserve(2 * unit);
  const Page first = pages.page(unit);
  const Page second = pages.page(unit);
  pages.map(window, unit, first);
  pages.map(window + unit, unit, second);
  work.fill(stream, window, 2 * unit, 100);
  pages.map(range, unit, first);
  device.beginCapture(stream, CaptureMode::kRelaxed).orThrow();
  work.fill(stream, range, unit, 1);
  ScopedGraph graph(device, stream);
  device.synchronizeDevice().orThrow();
  pages.unmap(range, unit);
  pages.map(range, unit, second);
  graph.launch(stream);
  work.verify(stream, window, unit, 100);
  work.verify(stream, window + unit, unit, 1);
  CHECK(work.mismatches() == 0);
}

}  // namespace cistern::test
