// A capture that begins between two device calls of one verb, when the stream was asked already.
#include "allocator/engine/events/spare_events.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/support/interposed_device.hpp"

namespace cistern::test {
namespace {

/// A capture of a stream, by somebody else, that begins right before the next event is recorded.
class BetweenCallsRig {
 public:
  explicit BetweenCallsRig(std::uint64_t capacity = kGiB)
      : sim(simOf(capacity, 10'000)),
        device(sim),
        allocator(device, optionsOf("thread_cache:off")) {}
  ~BetweenCallsRig() {
    allocator.audit();
    sim.audit();
    CHECK(sim.races().empty());
  }
  BetweenCallsRig(const BetweenCallsRig&) = delete;
  BetweenCallsRig& operator=(const BetweenCallsRig&) = delete;

  Stream stream() { return sim.createStream().orThrow(); }
  /// It begins before the next record, and ends before the call after that, or when the test says.
  void captureAtNextRecord(Stream captured, bool ends_at_once) {
    device.before = [=, this](Call call) {
      if (capturing) return endCapture(captured);
      if (call != Call::kRecordEvent) return;
      sim.beginCapture(captured, CaptureMode::kThreadLocal).orThrow();
      capturing = true;
      if (!ends_at_once) device.before = nullptr;
    };
  }
  void endCapture(Stream captured) {
    CHECK(sim.captureInfo(captured).orThrow().status == CaptureStatus::kActive);
    sim.destroyGraph(sim.endCapture(captured).orThrow()).orThrow();
    capturing = false;
    device.before = nullptr;
  }
  void* usedOn(Stream user, Stream own, std::size_t bytes) {
    void* block = allocator.allocate(bytes, own);
    allocator.recordStream(block, user);
    return block;
  }
  void poll(Stream stream) { hitUntilPoll(allocator, stream); }
  std::int64_t active() { return nowOf(allocator, Stat::kActive); }

  sim::SimDevice sim;
  InterposedDevice device;
  CachingAllocator allocator;
  bool capturing = false;
};

}  // namespace

TEST_CASE("a block whose event a capture has taken gets another when it is over", "[engine]") {
  for (const bool ends_at_once : {false, true}) {
    CAPTURE(ends_at_once);
    BetweenCallsRig rig;
    const Stream own = rig.stream(), user = rig.stream();
    void* before = rig.usedOn(user, own, 4 * kMiB);
    void* within = rig.usedOn(user, own, 4 * kMiB);
    rig.allocator.free(before);  // its event comes before the capture
    rig.captureAtNextRecord(user, ends_at_once);
    rig.allocator.free(within);
    rig.sim.advanceHost(kLongNs);
    rig.poll(own);
    if (!ends_at_once) {
      CHECK(rig.active() == 1);
      rig.endCapture(user);
    }
    for (int i = 0; i < 3; ++i) rig.poll(own);
    rig.sim.advanceHost(kLongNs);
    rig.poll(own);
    CHECK(rig.active() == 0);
    rig.allocator.free(rig.usedOn(user, own, 4 * kMiB));
    rig.sim.advanceHost(kLongNs);
    rig.poll(own);
    CHECK(rig.active() == 0);
    CHECK(waits(rig.sim) == 0);
  }
}

TEST_CASE("who is short of memory waits for a block whose event a capture has taken", "[engine]") {
  BetweenCallsRig rig(64 * kMiB);
  const Stream own = rig.stream(), user = rig.stream();
  void* block = rig.usedOn(user, own, 40 * kMiB);
  rig.captureAtNextRecord(user, true);
  rig.allocator.free(block);
  rig.allocator.free(rig.allocator.allocate(40 * kMiB, own));
  CHECK(rig.active() == 0);
}

TEST_CASE("a stream whose mark a capture has taken is marked again", "[engine]") {
  for (const bool ends_at_once : {false, true}) {
    CAPTURE(ends_at_once);
    BetweenCallsRig rig(64 * kMiB);
    const Stream first = rig.stream(), second = rig.stream();
    void* block = rig.allocator.allocate(40 * kMiB, first);
    const sim::Access use{toAddress(block), 40 * kMiB, sim::AccessKind::kWrite};
    rig.sim.launch(first, {"work", {use}, 2'000, nullptr}).orThrow();
    rig.allocator.free(block);
    rig.captureAtNextRecord(first, ends_at_once);
    void* small = rig.allocator.allocate(12 * kMiB, second);  // asks how far the first has come
    if (!ends_at_once) rig.endCapture(first);
    rig.sim.advanceHost(kLongNs);
    for (int i = 0; i < 2; ++i) rig.allocator.free(rig.allocator.allocate(14 * kMiB, second));
    rig.allocator.free(rig.allocator.allocate(40 * kMiB, second));
    CHECK(countOf(rig.sim, Call::kWaitEvent) == 0);  // nothing had to be ordered
    CHECK(waits(rig.sim) == 0);
    rig.allocator.free(small);
  }
}

TEST_CASE("blocks for which no event could be had get one later", "[engine]") {
  for (const Call call : {Call::kCreateEvent, Call::kRecordEvent}) {
    BetweenCallsRig rig;
    const Stream own = rig.stream(), user = rig.stream();
    void* block = rig.usedOn(user, own, 4 * kMiB);
    rig.sim.faults().failNth(call, 1, ErrorKind::kOther);
    rig.allocator.free(block);
    rig.poll(own);
    rig.sim.advanceHost(kLongNs);
    rig.poll(own);
    CHECK(rig.active() == 0);
    CHECK(waits(rig.sim) == 0);
  }
}

TEST_CASE("emptying the cache waits for blocks that a destroyed stream has used", "[engine]") {
  BetweenCallsRig rig;
  const Stream own = rig.stream(), user = rig.stream();
  void* block = rig.usedOn(user, own, 4 * kMiB);
  rig.sim.destroyStream(user).orThrow();
  rig.allocator.free(block);
  CHECK(rig.active() == 1);
  rig.allocator.emptyCache();
  CHECK(rig.active() == 0);
  CHECK(waits(rig.sim) == 1);
  rig.allocator.emptyCache();
  CHECK(waits(rig.sim) == 1);
}

TEST_CASE("where an event could not be made the next try makes one", "[engine]") {
  sim::SimDevice sim(simOf(kGiB));
  SpareEvents events(sim);
  sim.faults().failAll(Call::kCreateEvent);
  for (int i = 0; i < 3; ++i) CHECK(!events.take().ok());
  sim.faults().clear();
  SharedEvent taken = events.take().orThrow();
  const Event event = *taken;
  taken = nullptr;
  CHECK(*events.take().orThrow() == event);
}

}  // namespace cistern::test
