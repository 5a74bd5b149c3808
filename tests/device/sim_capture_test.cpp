// The simulated device's captures and graphs, where it is stricter than the contract or where only
// virtual time can show it.
#include <functional>
#include <thread>

#include "allocator/device/sim/costs.hpp"
#include "tests/device/sim_support.hpp"

namespace cistern::test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

/// A graph of two branches, of `left_ns` and `right_ns`, between a fork and a join.
DeviceGraphExec diamond(SimDevice& device, Stream stream, std::uint64_t left_ns,
                        std::uint64_t right_ns) {
  const Stream branch = newStream(device);
  device.beginCapture(stream, CaptureMode::kRelaxed).orThrow();
  launch(device, stream, "fork", {}, 0);
  order(device, stream, branch);
  launch(device, stream, "left", {}, left_ns);
  launch(device, branch, "right", {}, right_ns);
  order(device, branch, stream);
  launch(device, stream, "join", {}, 0);
  return endAndInstantiate(device, stream);
}

}  // namespace

TEST_CASE("branches of a graph overlap", "[sim][capture]") {
  SimDevice device;
  const Stream stream = newStream(device);
  const DeviceGraphExec exec = diamond(device, stream, 3 * kMs, 5 * kMs);
  device.launchGraph(exec, stream).orThrow();
  const std::uint64_t start = device.now();
  device.synchronizeStream(stream).orThrow();
  CHECK(device.now() == start + 5 * kMs);
}

TEST_CASE("two launches of one graph do not overlap, on whatever streams", "[sim][capture]") {
  SimDevice device;
  const Stream first = newStream(device);
  const Stream second = newStream(device);
  const DeviceGraphExec exec = diamond(device, first, 3 * kMs, 5 * kMs);
  device.launchGraph(exec, first).orThrow();
  const std::uint64_t start = device.now();
  device.launchGraph(exec, second).orThrow();
  device.synchronizeStream(second).orThrow();
  CHECK(device.now() == start + 10 * kMs);
}

TEST_CASE("two graphs on two streams overlap", "[sim][capture]") {
  SimDevice device;
  const Stream first = newStream(device);
  const Stream second = newStream(device);
  const DeviceGraphExec one = diamond(device, first, 5 * kMs, kMs);
  const DeviceGraphExec two = diamond(device, second, 5 * kMs, kMs);
  device.launchGraph(one, first).orThrow();
  device.launchGraph(two, second).orThrow();
  const std::uint64_t start = device.now();
  device.synchronizeDevice().orThrow();
  CHECK(device.now() < start + 6 * kMs);
}

TEST_CASE("a graph outlives the graph it was made from", "[sim][capture]") {
  SimDevice device;
  const Stream stream = newStream(device);
  device.beginCapture(stream, CaptureMode::kGlobal).orThrow();
  int runs = 0;
  device.launch(stream, {"count", {}, 1, [&](sim::MemoryView&) { ++runs; }}).orThrow();
  const DeviceGraph graph = device.endCapture(stream).orThrow();
  const DeviceGraphExec exec = device.instantiate(graph).orThrow();
  device.destroyGraph(graph).orThrow();
  CHECK(kindOf(device.instantiate(graph)) == ErrorKind::kInvalidHandle);
  device.launchGraph(exec, stream).orThrow();
  device.launchGraph(exec, stream).orThrow();
  device.destroyGraphExec(exec).orThrow();
  device.synchronizeDevice().orThrow();
  CHECK(runs == 2);
}

TEST_CASE("a graph launched into a capture becomes part of it", "[sim][capture]") {
  SimDevice device;
  const Stream stream = newStream(device);
  const DeviceGraphExec inner = diamond(device, stream, 3 * kMs, 5 * kMs);
  device.beginCapture(stream, CaptureMode::kGlobal).orThrow();
  device.launchGraph(inner, stream).orThrow();
  launch(device, stream, "between", {}, kMs);
  device.launchGraph(inner, stream).orThrow();
  const DeviceGraphExec outer = endAndInstantiate(device, stream);
  device.launchGraph(outer, stream).orThrow();
  const std::uint64_t start = device.now();
  device.synchronizeStream(stream).orThrow();
  CHECK(device.now() == start + 11 * kMs);
}

TEST_CASE("a node that never ends holds up what follows it, and only that", "[sim][capture]") {
  SimDevice device;
  const Stream stream = newStream(device);
  const Stream other = newStream(device);
  const DeviceGraphExec exec = diamond(device, stream, kNever, kMs);
  device.launchGraph(exec, stream).orThrow();
  CHECK(kindOf(device.synchronizeStream(stream)) == ErrorKind::kWouldWaitForever);
  launch(device, other, "free", {}, kMs);
  device.synchronizeStream(other).orThrow();
}

TEST_CASE("calls that could wait break the captures that forbid them", "[sim][capture]") {
  SimDevice device;
  const Stream captured = newStream(device);
  const Stream other = newStream(device);
  const Event event = recorded(device, other);
  const Address memory = device.malloc(kPage).orThrow();
  void* host = device.hostMalloc(64).orThrow();
  const std::vector<std::function<Status()>> calls = {
      [&] { return device.free(memory); },
      [&] { return device.synchronizeEvent(event); },
      [&] { return device.synchronizeStream(other); },
      [&] { return device.synchronizeDevice(); },
      [&] { return device.hostFree(host); },
      [&] {
        const auto queried = device.queryStream(other);
        return queried.ok() ? Status{} : Status{queried.error()};
      },
      [&] {
        const auto got = device.hostMalloc(64);
        return got.ok() ? Status{} : Status{got.error()};
      }};
  for (const auto& call : calls) {
    device.beginCapture(captured, CaptureMode::kThreadLocal).orThrow();
    CHECK(kindOf(call()) == ErrorKind::kCaptureForbidden);
    CHECK(kindOf(device.endCapture(captured)) == ErrorKind::kCaptureInvalidated);
  }
  device.audit();
}

TEST_CASE("a relaxed capture forbids nothing", "[sim][capture]") {
  SimDevice device;
  const Stream stream = newStream(device);
  device.beginCapture(stream, CaptureMode::kRelaxed).orThrow();
  device.free(device.malloc(kPage).orThrow()).orThrow();
  (void)device.endCapture(stream).orThrow();
}

TEST_CASE("a capturing stream can be neither queried, waited for nor destroyed", "[sim][capture]") {
  SimDevice device;
  const Stream stream = newStream(device);
  const auto breaks = [&](auto call) {
    device.beginCapture(stream, CaptureMode::kRelaxed).orThrow();
    const bool forbidden = kindOf(call()) == ErrorKind::kCaptureForbidden;
    return forbidden && kindOf(device.endCapture(stream)) == ErrorKind::kCaptureInvalidated;
  };
  CHECK(breaks([&] { return device.queryStream(stream); }));
  CHECK(breaks([&] { return device.synchronizeStream(stream); }));
  CHECK(breaks([&] { return device.destroyStream(stream); }));
  launch(device, stream, "still alive", {});
}

TEST_CASE("nothing is recorded into a broken capture", "[sim][capture]") {
  SimDevice device;
  const Stream stream = newStream(device);
  const Event event = device.createEvent().orThrow();
  device.beginCapture(stream, CaptureMode::kGlobal).orThrow();
  CHECK_FALSE(device.malloc(kPage).ok());
  CHECK(kindOf(device.launch(stream, {"late", {}, 0, nullptr})) == ErrorKind::kCaptureInvalidated);
  CHECK(kindOf(device.recordEvent(event, stream)) == ErrorKind::kCaptureInvalidated);
  CHECK(kindOf(device.waitEvent(stream, event)) == ErrorKind::kCaptureInvalidated);
  CHECK(device.queryEvent(event).error().kind == ErrorKind::kCaptureForbidden);
  CHECK_FALSE(device.endCapture(stream).ok());
  CHECK(device.queryEvent(event).orThrow());
}

TEST_CASE("a capture cannot wait for what is outside it, nor the other way", "[sim][capture]") {
  SimDevice device;
  const Stream first = newStream(device);
  const Stream second = newStream(device);
  const Stream outside = newStream(device);
  const Event eager = recorded(device, outside);
  device.beginCapture(first, CaptureMode::kRelaxed).orThrow();
  CHECK(device.waitEvent(first, eager).error().code == 905);
  CHECK_FALSE(device.endCapture(first).ok());

  device.beginCapture(first, CaptureMode::kRelaxed).orThrow();
  device.beginCapture(second, CaptureMode::kRelaxed).orThrow();
  const Event captured = recorded(device, first);
  CHECK(device.waitEvent(second, captured).error().code == 905);
  CHECK(device.queryEvent(captured).error().code == 907);
  CHECK_FALSE(device.endCapture(first).ok());
  CHECK_FALSE(device.endCapture(second).ok());
  CHECK(device.waitEvent(outside, captured).error().code == 907);
  device.recordEvent(captured, outside).orThrow();  // recorded anew, it is an event like any other
  CHECK(device.queryEvent(captured).orThrow());
}

TEST_CASE("a capture ends on the stream and the thread that began it", "[sim][capture]") {
  SimDevice device;
  const Stream stream = newStream(device);
  const Stream branch = newStream(device);
  device.beginCapture(stream, CaptureMode::kGlobal).orThrow();
  CHECK_FALSE(device.beginCapture(stream, CaptureMode::kGlobal).ok());
  order(device, stream, branch);
  CHECK(device.endCapture(branch).error().code == 903);
  int code = 0;
  std::thread([&] { code = device.endCapture(stream).error().code; }).join();
  CHECK(code == 908);
  CHECK(device.endCapture(stream).ok());  // a branch without work needs no join
}

TEST_CASE("the default stream cannot be captured", "[sim][capture]") {
  SimDevice device;
  CHECK_FALSE(device.beginCapture(Stream{}, CaptureMode::kRelaxed).ok());
  CHECK(kindOf(device.destroyStream(Stream{})) == ErrorKind::kInvalidHandle);
}

TEST_CASE("handles that are not alive are refused", "[sim]") {
  SimDevice device;
  const Stream stream = newStream(device);
  const Event event = recorded(device, stream);
  device.destroyStream(stream).orThrow();
  CHECK(kindOf(device.destroyStream(stream)) == ErrorKind::kInvalidHandle);
  CHECK(kindOf(device.queryStream(stream)) == ErrorKind::kInvalidHandle);
  CHECK(kindOf(device.recordEvent(event, stream)) == ErrorKind::kInvalidHandle);
  CHECK(kindOf(device.waitEvent(stream, event)) == ErrorKind::kInvalidHandle);
  CHECK(kindOf(device.captureInfo(stream)) == ErrorKind::kInvalidHandle);
  CHECK(kindOf(device.launch(stream, {"late", {}, 0, nullptr})) == ErrorKind::kInvalidHandle);
  device.destroyEvent(event).orThrow();
  CHECK(kindOf(device.destroyEvent(event)) == ErrorKind::kInvalidHandle);
  CHECK(kindOf(device.queryEvent(event)) == ErrorKind::kInvalidHandle);
  CHECK(kindOf(device.launchGraph(DeviceGraphExec{77}, Stream{})) == ErrorKind::kInvalidHandle);
  CHECK(kindOf(device.destroyGraphExec(DeviceGraphExec{77})) == ErrorKind::kInvalidHandle);
  CHECK(kindOf(device.hostFree(&device)) == ErrorKind::kInvalidValue);
}

TEST_CASE("a graph of twenty thousand nodes on eight streams runs", "[sim][capture]") {
  SimDevice device;
  constexpr std::size_t kStreams = 8;
  constexpr std::size_t kNodes = 20'000;
  std::vector<Stream> streams(kStreams);
  for (Stream& stream : streams) stream = newStream(device);
  const Address memory = device.malloc(kStreams * kMiB).orThrow();
  device.beginCapture(streams[0], CaptureMode::kRelaxed).orThrow();
  for (std::size_t i = 0; i < kNodes / kStreams; ++i) {
    for (std::size_t s = 1; s < kStreams; ++s) order(device, streams[0], streams[s]);
    for (std::size_t s = 0; s < kStreams; ++s) {
      launch(device, streams[s], "node", {writes(memory + s * kMiB, kMiB)}, kMs);
    }
    for (std::size_t s = 1; s < kStreams; ++s) order(device, streams[s], streams[0]);
  }
  const DeviceGraphExec exec = endAndInstantiate(device, streams[0]);
  for (int i = 0; i < 2; ++i) device.launchGraph(exec, streams[0]).orThrow();
  const std::uint64_t start = device.now();
  device.synchronizeDevice().orThrow();
  CHECK(device.now() + sim::cost::kLaunchGraph == start + 2 * (kNodes / kStreams) * kMs);
  CHECK(device.races().empty());
  device.audit();
}

}  // namespace cistern::test
