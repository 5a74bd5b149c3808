// Streams that the program has named, and that it is about to destroy.
#include "allocator/engine/events/known_streams.hpp"

#include <string>

#include "tests/engine/parts_support.hpp"

namespace cistern::test {
namespace {

sim::SimConfig withHandlesAgain() {
  sim::SimConfig config = simOf(kGiB);
  config.reuse_streams = true;
  return config;
}

struct KnownRig : Parts {
  KnownRig() : Parts(withHandlesAgain()) {}
  /// "present", "ending" or "ended".
  std::string stateOf(Stream stream) {
    const KnownStreams::Look at = streams.look(stream);
    return !at.forgotten ? "present" : at.end ? "ending" : "ended";
  }
  /// Forgets and destroys it.
  void end(Stream stream) {
    streams.forgetStream(stream);
    sim.destroyStream(stream).orThrow();
  }
};

}  // namespace

TEST_CASE("a stream is present until it is forgotten, and has ended when its work has",
          "[engine][part]") {
  KnownRig rig;
  const Stream stream = rig.busyStream();
  CHECK(rig.stateOf(stream) == "present");
  rig.end(stream);
  CHECK(rig.stateOf(stream) == "ending");
  rig.sim.advanceHost(2 * kLongNs);
  CHECK(rig.stateOf(stream) == "ended");
  CHECK(rig.sim.callsOnDeadStreams() == 0);
}

TEST_CASE("the device is not asked for a stream that is present, or was never met",
          "[engine][part]") {
  KnownRig rig;
  const Stream known = rig.stream(), unknown = rig.sim.createStream().orThrow();
  const CallCounts before = rig.sim.callCounts();
  rig.streams.registerStream(known);
  rig.streams.forgetStream(unknown);
  CHECK(rig.stateOf(known) == "present");
  CHECK(rig.stateOf(unknown) == "ended");
  CHECK(rig.sim.callCounts() == before);
}

TEST_CASE("a stream with the handle of one that is ending comes after that one's end",
          "[engine][part]") {
  KnownRig rig;
  const Stream first = rig.busyStream();
  rig.end(first);
  const Stream second = rig.sim.createStream().orThrow();
  REQUIRE(second == first);
  rig.streams.registerStream(second);
  CHECK(rig.stateOf(second) == "present");
  CHECK(rig.calls(Call::kWaitEvent) == 1);
  CHECK_FALSE(rig.sim.queryStream(second).orThrow());
  rig.sim.advanceHost(2 * kLongNs);
  CHECK(rig.sim.queryStream(second).orThrow());
  CHECK(waits(rig.sim) == 0);
}

TEST_CASE("a stream with the handle of one that has ended is not ordered", "[engine][part]") {
  KnownRig rig;
  rig.end(rig.stream());
  const Stream second = rig.stream();
  CHECK(rig.stateOf(second) == "present");
  CHECK(rig.calls(Call::kWaitEvent) == 0);
}

TEST_CASE("a captured stream with the handle of one that is ending has the host wait instead",
          "[engine][part]") {
  KnownRig rig;
  const Stream first = rig.busyStream();
  rig.end(first);
  const Stream second = rig.sim.createStream().orThrow();
  REQUIRE(second == first);
  rig.beginCapture(second);
  rig.streams.registerStream(second);
  CHECK(rig.stateOf(second) == "present");
  CHECK(rig.calls(Call::kSynchronizeEvent) == 1);
  CHECK(rig.calls(Call::kWaitEvent) == 0);
  rig.endCapture(second);
}

TEST_CASE("a stream that is forgotten twice has its end behind both", "[engine][part]") {
  KnownRig rig;
  const Stream stream = rig.busyStream();
  rig.streams.forgetStream(stream);
  rig.work(stream, kLongNs);
  rig.streams.forgetStream(stream);
  rig.sim.advanceHost(kLongNs + kLongNs / 2);
  CHECK(rig.stateOf(stream) == "ending");
  rig.sim.advanceHost(kLongNs);
  CHECK(rig.stateOf(stream) == "ended");
}

TEST_CASE("a stream that was never named ends after one that is ending and had its handle",
          "[engine][part]") {
  KnownRig rig;
  const Stream first = rig.busyStream();
  rig.end(first);
  const Stream second = rig.sim.createStream().orThrow();
  REQUIRE(second == first);
  rig.end(second);  // idle itself
  CHECK(rig.stateOf(second) == "ending");
  rig.sim.advanceHost(2 * kLongNs);
  CHECK(rig.stateOf(second) == "ended");
}

TEST_CASE("a stream is not forgotten while it is captured, or dead, or no event is to be had",
          "[engine][part]") {
  KnownRig rig;
  const Stream stream = rig.busyStream(), dead = rig.stream();
  Heap& heap = rig.heapOf(stream);
  rig.beginCapture(stream);
  CHECK_THROWS_AS(rig.streams.forgetStream(stream), InvalidArgument);
  rig.endCapture(stream);
  for (const Call call : {Call::kCaptureInfo, Call::kCreateEvent, Call::kRecordEvent}) {
    rig.sim.faults().failNth(call, 1, ErrorKind::kOther);
    CHECK_THROWS_AS(rig.streams.forgetStream(stream), DeviceFailure);
    CHECK(rig.stateOf(stream) == "present");
    CHECK_FALSE(heap.forgotten());
  }
  rig.sim.destroyStream(dead).orThrow();
  CHECK_THROWS_AS(rig.streams.forgetStream(dead), InvalidArgument);
  CHECK(rig.stateOf(dead) == "present");
}

TEST_CASE("a stream that cannot be ordered after the one before it is not met", "[engine][part]") {
  KnownRig rig;
  const Stream first = rig.busyStream();
  Heap& heap = rig.heapOf(first);
  rig.end(first);
  CHECK(heap.forgotten());
  const Stream second = rig.sim.createStream().orThrow();
  REQUIRE(second == first);
  rig.sim.faults().failNth(Call::kWaitEvent, 1, ErrorKind::kOther);
  CHECK_THROWS_AS(rig.streams.registerStream(second), DeviceFailure);
  CHECK(rig.stateOf(second) == "ending");
  CHECK(heap.forgotten());
  rig.streams.registerStream(second);
  CHECK_FALSE(heap.forgotten());
}

TEST_CASE("records of streams that have ended go, and their heaps find new streams all the same",
          "[engine][part]") {
  Parts rig;  // each stream has a handle of its own
  const Stream first = rig.stream();
  Heap& heap = rig.heapOf(first);
  rig.streams.forgetStream(first);
  for (int i = 0; i < 1'000; ++i) {
    const Stream stream = rig.stream();
    rig.streams.forgetStream(stream);
    rig.sim.destroyStream(stream).orThrow();
  }
  CHECK(rig.calls(Call::kCreateEvent) < 500);  // an end is held by its record
  CHECK(heap.forgotten());
  rig.streams.registerStream(first);
  CHECK_FALSE(heap.forgotten());
  CHECK(rig.heaps.find(first) == &heap);
}

TEST_CASE("a record whose end is not reached stays while a thousand others go", "[engine][part]") {
  Parts rig;
  const Stream late = rig.busyStream(sim::kNever);
  rig.streams.forgetStream(late);
  for (int i = 0; i < 1'000; ++i) {
    const Stream stream = rig.stream();
    rig.streams.forgetStream(stream);
    rig.sim.destroyStream(stream).orThrow();
  }
  CHECK(rig.streams.look(late).end != nullptr);
  const std::uint64_t waits = rig.calls(Call::kWaitEvent);
  rig.streams.registerStream(late);  // behind the work of the one before
  CHECK(rig.calls(Call::kWaitEvent) == waits + 1);
}

}  // namespace cistern::test
