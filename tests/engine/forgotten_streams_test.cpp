// Streams that a program destroys, having said so. From then on no call names them, and what they
// have left serves others when their work is complete, and not before.
#include <optional>
#include <thread>

#include "allocator/engine/exchange/exchange.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

sim::SimConfig reusingStreams(std::uint64_t capacity = kGiB, std::uint64_t lag_ns = 0) {
  sim::SimConfig config = simOf(capacity, lag_ns);
  config.reuse_streams = true;
  return config;
}

/// At the end nothing may have been asked of a stream that is not alive.
struct ForgettingRig : SimRig {
  using SimRig::SimRig;
  ~ForgettingRig() { CHECK(sim().callsOnDeadStreams() == 0); }

  void leave(Stream stream) {
    allocator.forgetStream(stream);
    sim().destroyStream(stream).orThrow();
  }
  void* written(std::size_t bytes, Stream stream) {
    void* block = allocator.allocate(bytes, stream);
    touch(stream, block);
    return block;
  }
  void finish() { sim().synchronizeDevice().orThrow(); }
};

/// A device of 84 MiB, of which a forgotten stream has left 40 free, 4 in use, and 4 in use that
/// are another stream's; its work is far from complete.
struct LeftBehindRig : ForgettingRig {
  explicit LeftBehindRig(std::string_view conf = "", sim::SimConfig config = simOf(84 * kMiB))
      : ForgettingRig(conf, std::move(config)), other(stream()) {
    const Stream gone = stream();
    work.delay(gone, kLongNs);
    void* free = written(40 * kMiB, gone);
    held = written(4 * kMiB, gone);
    used = allocator.allocate(4 * kMiB, other);
    allocator.recordStream(used, gone);
    touch(gone, used);
    allocator.free(free);
    leave(gone);
  }
  bool complete() { return sim().now() >= kLongNs; }
  void freeAll() {
    allocator.free(held);
    allocator.free(used);
  }
  Stream other;
  void *held = nullptr, *used = nullptr;
};

}  // namespace

// ---- What is not asked -------------------------------------------------------------------------

TEST_CASE("no verb asks a forgotten stream anything", "[engine]") {
  for (const bool complete : {false, true}) {
    LeftBehindRig rig("garbage_collection_threshold:0.1");
    if (complete) rig.finish();
    for (std::size_t size : {kKiB, 2 * kMiB, 9 * kMiB}) {
      rig.allocator.free(rig.written(size, rig.other));
    }
    rig.allocator.emptyCache();
    rig.freeAll();
    rig.allocator.free(rig.written(3 * kMiB, rig.other));
    cistern::trim(rig.allocator.engine(), rig.allocator.engine().default_pool.heaps(), 0);
    rig.allocator.audit();
    CHECK(rig.allocator.memoryStats().num_misuses == 0);
    CHECK(rig.allocator.cacheInfo().free_bytes <= 84 * kMiB);
    CHECK_THROWS_AS(rig.allocator.allocate(85 * kMiB, rig.other), OutOfMemory);
    rig.allocator.free(rig.written(62 * kMiB, rig.other));
    rig.allocator.emptyCache();
    rig.finish();
    rig.allocator.emptyCache();
    CHECK(reservedOf(rig.allocator) == 0);
  }
}

TEST_CASE("no fallback before OutOfMemory asks a forgotten stream", "[engine]") {
  LeftBehindRig rig;
  void* block = rig.written(44 * kMiB, rig.other);
  CHECK_THROWS_AS(rig.allocator.allocate(36 * kMiB, rig.other), OutOfMemory);
  rig.allocator.free(block);
  rig.freeAll();
}

TEST_CASE("without pages moving, or reuse between streams, no forgotten stream is asked",
          "[engine]") {
  for (const char* conf :
       {"cross_stream_reuse:false", "recycle:off", "background_thread:false", "backing:segments"}) {
    INFO(conf);
    LeftBehindRig rig(conf);
    rig.allocator.free(rig.written(12 * kMiB, rig.other));
    rig.freeAll();
    rig.allocator.emptyCache();
    rig.finish();
    rig.allocator.free(rig.written(60 * kMiB, rig.other));
    rig.finish();
    rig.allocator.emptyCache();
    CHECK(reservedOf(rig.allocator) == 0);
  }
}

TEST_CASE("streams come and go while their memory serves the next", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    const Streams streams(allocator, 1);
    std::vector<std::vector<char>> churn;  // takes what host memory the driver has let go of
    for (std::uint32_t round = 0; round < 40; ++round) {
      const Stream stream = work.device().createStream().orThrow();
      void* block = allocator.allocate((8 + round % 5) * kMiB, stream);
      void* used = allocator.allocate(kMiB, streams[0]);
      allocator.recordStream(used, stream);
      work.fill(stream, toAddress(block), 8 * kMiB, round);
      work.fill(stream, toAddress(used), kMiB, round);
      work.verify(stream, toAddress(block), 8 * kMiB, round);
      work.verify(stream, toAddress(used), kMiB, round);
      if (round % 2 == 0) allocator.free(block);
      allocator.forgetStream(stream);
      work.device().destroyStream(stream).orThrow();
      for (std::size_t size = 64; size < 64 * kKiB; size *= 2) churn.emplace_back(size, 'x');
      if (round % 2 == 1) allocator.free(block);
      allocator.free(used);
      if (round % 8 == 7) allocator.emptyCache();
    }
    CHECK(work.mismatches() == 0);
    allocator.emptyCache();
    CHECK(reservedOf(allocator) == 0);
    allocator.audit();
  });
}

// ---- What is left ------------------------------------------------------------------------------

TEST_CASE("what a forgotten stream has left serves others once its work is complete",
          "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    const Streams streams(allocator, 1);
    const Stream gone = work.device().createStream().orThrow();
    void* block = allocator.allocate(8 * kMiB, gone);
    work.delay(gone, kLongNs);
    work.fill(gone, toAddress(block), 8 * kMiB, 1);
    const Event end = work.device().createEvent().orThrow();
    work.device().recordEvent(end, gone).orThrow();
    allocator.forgetStream(gone);
    work.device().destroyStream(gone).orThrow();  // HIP's waits for the stream's work
    const bool complete = work.device().queryEvent(end).orThrow();
    CHECK((!complete || work.device().backend() == "hip"));
    work.device().destroyEvent(end).orThrow();
    allocator.free(block);
    void* early = allocator.allocate(8 * kMiB, streams[0]);
    CHECK((early != block || complete));
    work.device().synchronizeDevice().orThrow();
    void* late = allocator.allocate(8 * kMiB, streams[0]);
    // Its page may have served the first one already, at another address, if it was complete by
    // then.
    CHECK(reservedOf(allocator) <= mib(onPages(allocator) ? 16 : 40));
    for (void* one : {early, late}) allocator.free(one);
    allocator.audit();
  });
}

TEST_CASE("under pressure others are ordered after a forgotten stream, without a wait",
          "[engine]") {
  LeftBehindRig rig;
  const std::uint64_t waited = waits(rig.sim());
  const std::uint64_t records = countOf(rig.sim(), Call::kRecordEvent);
  void* block = rig.written(40 * kMiB, rig.other);
  CHECK(waits(rig.sim()) == waited);
  CHECK(countOf(rig.sim(), Call::kRecordEvent) == records);
  CHECK(!rig.complete());
  rig.allocator.free(block);
  rig.freeAll();
}

TEST_CASE("memory that queued work of a forgotten stream uses is given back when that is complete",
          "[engine]") {
  LeftBehindRig rig("background_thread:false");
  rig.freeAll();
  rig.allocator.emptyCache();
  if (onPages(rig.allocator)) CHECK(reservedOf(rig.allocator) >= mib(44));
  rig.finish();
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("a block that a forgotten stream has used is free when that is complete", "[engine]") {
  for (const bool complete : {false, true}) {
    LeftBehindRig rig;
    if (complete) rig.finish();
    rig.allocator.free(rig.used);
    CHECK(nowOf(rig.allocator, Stat::kActive) == (complete ? 1 : 2));
    void* next = rig.written(4 * kMiB, rig.other);
    CHECK((next == rig.used) == complete);
    rig.finish();
    rig.allocator.free(rig.held);
    rig.allocator.free(next);
    rig.allocator.free(rig.written(32 * kMiB, rig.other));
    CHECK(nowOf(rig.allocator, Stat::kActive) == 0);
  }
}

TEST_CASE("a free that a capture had put off waits for the end of the stream", "[engine]") {
  ForgettingRig rig("thread_cache:off");
  const Stream own = rig.stream(), gone = rig.stream();
  void* block = rig.allocator.allocate(4 * kMiB, own);
  rig.allocator.recordStream(block, gone);
  rig.work.delay(gone, kLongNs);
  rig.touch(gone, block);
  rig.sim().beginCapture(gone, CaptureMode::kRelaxed).orThrow();
  rig.allocator.free(block);
  CHECK_THROWS_AS(rig.allocator.forgetStream(gone), InvalidArgument);
  CHECK(rig.sim().captureInfo(gone).orThrow().status == CaptureStatus::kActive);
  const DeviceGraph graph = rig.sim().endCapture(gone).orThrow();
  rig.sim().destroyGraph(graph).orThrow();
  rig.leave(gone);
  CHECK(rig.written(4 * kMiB, own) != block);
  CHECK(nowOf(rig.allocator, Stat::kActive) == 2);
  rig.finish();
  hitUntilPoll(rig.allocator, own);
  CHECK(nowOf(rig.allocator, Stat::kActive) == 1);
}

TEST_CASE("work that never ends on a forgotten stream keeps back only what it uses", "[engine]") {
  ForgettingRig rig("", simOf(64 * kMiB));
  const Stream gone = rig.stream(), other = rig.stream();
  void* lost = rig.written(20 * kMiB, gone);
  rig.neverEnd(gone);
  rig.allocator.free(lost);
  rig.leave(gone);
  const std::uint64_t waited = waits(rig.sim());
  for (int i = 0; i < 5; ++i) rig.allocator.free(rig.written(30 * kMiB, other));
  rig.allocator.emptyCache();
  CHECK(waits(rig.sim()) == waited);
  CHECK(reservedOf(rig.allocator) >= mib(onPages(rig.allocator) ? 20 : 0));
}

// ---- A new stream with the same handle ---------------------------------------------------------

TEST_CASE("a new stream with a forgotten one's handle comes after it", "[engine]") {
  ForgettingRig rig("", reusingStreams());
  const Stream old = rig.stream();
  rig.work.delay(old, kLongNs);
  void* block = rig.written(4 * kMiB, old);
  rig.allocator.free(block);
  rig.leave(old);
  const Stream young = rig.stream();
  REQUIRE(young == old);
  const std::uint64_t orders = countOf(rig.sim(), Call::kWaitEvent);
  const std::uint64_t waited = waits(rig.sim());
  CHECK(rig.written(4 * kMiB, young) == block);  // a race, were it not ordered
  CHECK(countOf(rig.sim(), Call::kWaitEvent) == orders + 1);
  CHECK(waits(rig.sim()) == waited);
  rig.allocator.free(block);
  const CallCounts before = rig.sim().callCounts();
  CHECK(rig.allocator.allocate(4 * kMiB, young) == block);
  CHECK(rig.sim().callCounts() == before);  // alive again: a hit
  rig.allocator.free(block);
}

TEST_CASE("a new stream need not wait for one whose work is complete", "[engine]") {
  ForgettingRig rig("", reusingStreams());
  const Stream old = rig.stream();
  void* block = rig.written(4 * kMiB, old);
  rig.allocator.free(block);
  rig.leave(old);
  rig.finish();
  CHECK(rig.written(4 * kMiB, rig.stream()) == block);
  CHECK(countOf(rig.sim(), Call::kWaitEvent) == 0);
}

TEST_CASE("a use on a new stream is not covered by the end of the old one", "[engine]") {
  for (const bool allocates : {false, true}) {
    ForgettingRig rig("thread_cache:off", reusingStreams());
    const Stream own = rig.stream(), old = rig.stream();
    void* block = rig.allocator.allocate(4 * kMiB, own);
    if (allocates) rig.allocator.free(rig.written(kMiB, old));
    rig.allocator.recordStream(block, old);
    rig.touch(old, block);
    rig.leave(old);
    const Stream young = rig.stream();
    REQUIRE(young == old);
    rig.allocator.recordStream(block, young);
    rig.finish();
    rig.work.delay(young, kLongNs);
    rig.touch(young, block);
    rig.allocator.free(block);
    rig.allocator.free(rig.written(4 * kMiB, own));
    hitUntilPoll(rig.allocator, own);
    CHECK(nowOf(rig.allocator, Stat::kActive) == 1);
    rig.finish();
    hitUntilPoll(rig.allocator, own);
    CHECK(nowOf(rig.allocator, Stat::kActive) == 0);
    rig.leave(young);
  }
}

TEST_CASE("a new stream that is being captured waits on the host", "[engine]") {
  ForgettingRig rig("", reusingStreams());
  const Stream old = rig.stream();
  rig.work.delay(old, kLongNs);
  rig.allocator.free(rig.written(4 * kMiB, old));
  rig.leave(old);
  const Stream young = rig.stream();
  rig.sim().beginCapture(young, CaptureMode::kGlobal).orThrow();
  (void)rig.allocator.allocate(4 * kMiB, young);
  CHECK(rig.sim().now() >= kLongNs);
  CHECK(rig.sim().captureInfo(young).orThrow().status == CaptureStatus::kActive);
  rig.sim().destroyGraph(rig.sim().endCapture(young).orThrow()).orThrow();
}

TEST_CASE("a thread that knew the old stream orders the new one too", "[engine]") {
  ForgettingRig rig("", reusingStreams());
  std::optional<Stream> named;
  std::atomic<int> turn{0};
  const auto await = [&](int n) {
    while (turn != n) std::this_thread::yield();
  };
  std::thread worker([&] {
    for (int n : {1, 3}) {
      await(n);
      rig.allocator.free(rig.written(4 * kMiB, *named));
      turn = n + 1;
    }
  });
  named = rig.stream();
  rig.work.delay(*named, kLongNs);
  turn = 1;
  await(2);
  rig.leave(*named);
  named = rig.stream();
  turn = 3;
  worker.join();
  CHECK(countOf(rig.sim(), Call::kWaitEvent) == 1);
}

TEST_CASE("a stream that was forgotten and not destroyed goes on", "[engine]") {
  ForgettingRig rig;
  const Stream stream = rig.stream(), other = rig.stream();
  void* block = rig.written(4 * kMiB, stream);
  rig.allocator.forgetStream(stream);
  rig.touch(stream, block);
  rig.allocator.forgetStream(stream);  // once more, for what was queued since
  rig.allocator.free(block);
  CHECK(rig.written(4 * kMiB, stream) == block);
  rig.work.delay(stream, kLongNs);
  rig.touch(stream, block);
  rig.allocator.free(block);
  rig.leave(stream);
  CHECK(rig.written(4 * kMiB, other) != block);
}

TEST_CASE("streams that come and go take no more events than are under way", "[engine]") {
  sim::SimDevice device(reusingStreams());
  {
    CachingAllocator allocator(device, optionsOf());
    for (int round = 0; round < 100; ++round) {
      const Stream stream = device.createStream().orThrow();
      void* block = allocator.allocate(4 * kMiB, stream);
      allocator.recordStream(block, {});
      allocator.free(block);
      allocator.forgetStream(stream);
      device.destroyStream(stream).orThrow();
    }
    CHECK(countOf(device, Call::kCreateEvent) <= 8);
  }
  CHECK(countOf(device, Call::kCreateEvent) == countOf(device, Call::kDestroyEvent));
}

// ---- Refusals and failures ---------------------------------------------------------------------

TEST_CASE("the default stream cannot be forgotten", "[engine]") {
  ForgettingRig rig;
  CHECK_THROWS_AS(rig.allocator.forgetStream({}), InvalidArgument);
}

TEST_CASE("a stream that no verb has named is forgotten without a call", "[engine]") {
  ForgettingRig rig;
  const Stream stream = rig.stream();
  const CallCounts before = rig.sim().callCounts();
  rig.allocator.forgetStream(stream);
  CHECK(rig.sim().callCounts() == before);
  rig.sim().destroyStream(stream).orThrow();
}

TEST_CASE("when a stream cannot be forgotten nothing has changed", "[engine]") {
  for (Call call : {Call::kCaptureInfo, Call::kCreateEvent, Call::kRecordEvent}) {
    INFO(callName(call));
    ForgettingRig rig;
    const Stream stream = rig.stream();
    void* block = rig.written(4 * kMiB, stream);
    rig.allocator.free(block);
    rig.sim().faults().failAll(call, ErrorKind::kOther);
    CHECK_THROWS_AS(rig.allocator.forgetStream(stream), DeviceFailure);
    rig.sim().faults().clear();
    const CallCounts before = rig.sim().callCounts();
    CHECK(rig.allocator.allocate(4 * kMiB, stream) == block);
    CHECK(rig.sim().callCounts() == before);  // a hit, as if nothing had been
    rig.allocator.free(block);
    rig.leave(stream);
  }
}

TEST_CASE("a new stream that cannot be ordered after the old one gets nothing", "[engine]") {
  ForgettingRig rig("", reusingStreams());
  const Stream old = rig.stream();
  rig.work.delay(old, kLongNs);
  void* block = rig.written(4 * kMiB, old);
  rig.allocator.free(block);
  rig.leave(old);
  const Stream young = rig.stream();
  rig.sim().faults().failAll(Call::kWaitEvent, ErrorKind::kOther);
  CHECK_THROWS_AS(rig.allocator.allocate(4 * kMiB, young), DeviceFailure);
  rig.sim().faults().clear();
  CHECK(rig.written(4 * kMiB, young) == block);
}

TEST_CASE("any one device call may fail while streams are forgotten", "[engine][long]") {
  std::uint64_t nth = 0;
  for (bool met = true; met;) {
    INFO("call " << ++nth);
    ForgettingRig rig("", reusingStreams(64 * kMiB, 20'000));
    const Stream own = rig.stream();
    Stream gone = rig.stream();
    rig.sim().faults().failNthOfAll(nth, ErrorKind::kOther);
    const auto insist = [](auto verb) {
      try {
        verb();
      } catch (const DeviceFailure&) {
        verb();
      } catch (const OutOfMemory&) {
        verb();
      }
    };
    for (int round = 0; round < 3; ++round) {
      void *block = nullptr, *used = nullptr;
      insist([&] { block = rig.allocator.allocate(30 * kMiB, gone); });
      insist([&] { used = rig.allocator.allocate(10 * kMiB, own); });
      insist([&] { rig.allocator.recordStream(used, gone); });
      rig.touch(gone, block);
      rig.touch(gone, used);
      if (round % 2 == 0) rig.allocator.free(block);
      insist([&] { rig.allocator.forgetStream(gone); });
      while (!rig.sim().destroyStream(gone)) {
      }
      if (round % 2 == 1) rig.allocator.free(block);
      rig.allocator.free(used);
      void* large = nullptr;
      insist([&] { large = rig.allocator.allocate(40 * kMiB, own); });
      rig.touch(own, large);
      rig.allocator.free(large);
      auto made = rig.sim().createStream();
      gone = made ? made.value() : rig.stream();
    }
    met = rig.sim().faults().hits() > 0;
    rig.sim().faults().clear();
  }
  CHECK(nth > 40);
}

// ---- Threads -----------------------------------------------------------------------------------

TEST_CASE("threads forget their streams while others look for memory", "[engine]") {
  ForgettingRig rig("limit:96M", simOf(kGiB, 20'000));
  onThreads(4, [&](std::size_t i) {
    for (std::size_t round = 0; round < 60; ++round) {
      const Stream stream = rig.stream();
      void* block = rig.allocator.allocate((1 + (i + round) % 4) * 3 * kMiB, stream);
      void* shared = rig.allocator.allocate(kMiB);
      rig.allocator.recordStream(shared, stream);
      rig.touch(stream, block);
      rig.touch(stream, shared);
      if (round % 2 == 0) rig.allocator.free(block);
      rig.leave(stream);
      if (round % 2 == 1) rig.allocator.free(block);
      rig.allocator.free(shared);
      if (round % 16 == i) rig.allocator.emptyCache();
    }
  });
  rig.finish();
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
  CHECK(nowOf(rig.allocator, Stat::kActive) == 0);
}

}  // namespace cistern::test
