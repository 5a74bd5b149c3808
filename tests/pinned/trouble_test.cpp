// What goes wrong: limits, a system that refuses, wrong frees, forks.
#include <atomic>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/pinned/pinned_support.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/lying_device.hpp"

namespace cistern::test {

TEST_CASE("a limit is kept, and free memory makes room under it", "[pinned]") {
  PinnedRig rig;
  rig.pinned.setLimit(16 * kMiB);
  CHECK(rig.pinned.limit() == 16 * kMiB);
  void* const one = rig.pinned.allocate(10 * kMiB);
  CHECK_THROWS_WITH(rig.pinned.allocate(8 * kMiB),
                    Catch::Matchers::ContainsSubstring("8.00 MiB were asked for") &&
                        Catch::Matchers::ContainsSubstring(
                            "10.00 MiB are pinned, of which 10.00 MiB are allocated") &&
                        Catch::Matchers::ContainsSubstring("the limit is 16.00 MiB"));
  for (int i = 0; i < 8; ++i) rig.pinned.free(rig.pinned.allocate(1'000));  // 2 MiB of them
  rig.pinned.free(one);
  void* const other = rig.pinned.allocate(16 * kMiB);
  CHECK(rig.reserved() == std::int64_t(16 * kMiB));
  rig.pinned.free(other);
  CHECK(rig.pinned.stats().num_ooms == 1);
  CHECK(rig.pinned.stats().num_alloc_retries == 2);
}

TEST_CASE("a request waits for queued work rather than be out of memory", "[pinned]") {
  PinnedRig rig;
  rig.pinned.setLimit(8 * kMiB);
  const Stream stuck = rig.stream(), stream = rig.stream();
  rig.device->launch(stuck, {"never ends", {}, sim::kNever, {}}).orThrow();
  void* const kept = rig.pinned.allocate(2 * kMiB);
  rig.pinned.recordStream(kept, stuck);
  rig.pinned.free(kept);
  void* const used = rig.freedInUse(stream, 6 * kMiB);
  CHECK(rig.pinned.allocate(6 * kMiB) == used);
  CHECK(rig.pinned.stats().num_waits > 0);
  CHECK_THROWS_WITH(rig.pinned.allocate(2 * kMiB),
                    Catch::Matchers::ContainsSubstring("2.00 MiB wait for queued work"));
}

TEST_CASE("a request beyond all bounds is refused at once", "[pinned]") {
  PinnedRig rig;
  for (const std::uint64_t bytes : {2 * kTiB, ~std::uint64_t{0}}) {
    CHECK_THROWS_WITH(rig.pinned.allocate(bytes),
                      Catch::Matchers::ContainsSubstring("no request may be larger"));
  }
  CHECK(rig.calls(Call::kHostMalloc) == 0);
}

TEST_CASE("where the system pins no more, what is free is given back first", "[pinned]") {
  PinnedRig rig;
  rig.pinned.free(rig.pinned.allocate(1'000));
  rig.device->faults().failNth(Call::kHostMalloc, 1);
  void* const block = rig.pinned.allocate(4 * kMiB);
  CHECK(rig.pinned.stats().num_host_free == 1);
  rig.pinned.free(block);
  rig.device->faults().failAll(Call::kHostMalloc);
  CHECK_THROWS_WITH(rig.pinned.allocate(5 * kMiB),
                    Catch::Matchers::ContainsSubstring("host_malloc failed"));
  rig.device->faults().clear();
  CHECK(rig.reserved() == 0);
  rig.pinned.free(rig.pinned.allocate(5 * kMiB));
}

TEST_CASE("pinned memory that no device may return is refused by name", "[pinned]") {
  const auto sim = sim::makeDevice();
  LyingDevice device(*sim);
  PinnedAllocator pinned(device);
  device.call = Call::kHostMalloc;
  for (const Address wrong : {Address{0}, Address{513}, ~Address{0} - 511}) {
    device.instead = wrong;
    device.taken_back = 0;
    CHECK_THROWS_WITH(pinned.allocate(kMiB),
                      Catch::Matchers::ContainsSubstring("host_malloc failed: broken promise"));
    CHECK((device.taken_back > 0) == (wrong != 0));
    device.instead.reset();
    CHECK(pinned.stats().reserved_bytes.current == 0);
    pinned.audit();
  }
  pinned.free(pinned.allocate(kMiB));
}

TEST_CASE("memory that the system does not take back is kept, and offered again", "[pinned]") {
  PinnedRig rig;
  rig.pinned.free(rig.pinned.allocate(4 * kMiB));
  rig.device->faults().failNth(Call::kHostFree, 1, ErrorKind::kOther);
  rig.pinned.emptyCache();
  CHECK(rig.reserved() == std::int64_t(4 * kMiB));
  rig.pinned.audit();
  rig.pinned.emptyCache();
  CHECK(rig.reserved() == 0);
}

TEST_CASE("a stream is refused, and nothing changes, if the device does not order it", "[pinned]") {
  sim::SimConfig config;
  config.reuse_streams = true;
  PinnedRig rig(config);
  const Stream first = rig.stream();
  (void)rig.freedInUse(first, kMiB);
  rig.pinned.forgetStream(first);
  rig.device->destroyStream(first).orThrow();
  const Stream second = rig.stream();
  REQUIRE(second == first);
  void* const block = rig.pinned.allocate(2 * kMiB);
  rig.device->faults().failNth(Call::kWaitEvent, 1, ErrorKind::kOther);
  CHECK_THROWS_AS(rig.pinned.recordStream(block, second), DeviceFailure);
  rig.pinned.free(block);  // which nothing uses
  CHECK(rig.active() == 1);
}

TEST_CASE("a block whose event cannot be had at its free gets one later", "[pinned]") {
  PinnedRig rig;
  const Stream stream = rig.stream();
  rig.device->faults().failNth(Call::kCreateEvent, 1, ErrorKind::kOther);
  void* const block = rig.freedInUse(stream, kMiB);
  CHECK(rig.device->faults().hits(Call::kCreateEvent) == 1);
  CHECK(rig.pinned.allocate(kMiB) != block);
  rig.sync(stream);
  CHECK(rig.pinned.allocate(kMiB) == block);
}

TEST_CASE("if no event is to be had at all, a request waits for the device", "[pinned]") {
  PinnedRig rig;
  rig.pinned.setLimit(4 * kMiB);
  rig.device->faults().failAll(Call::kCreateEvent, ErrorKind::kOther);
  void* const block = rig.freedInUse(rig.stream(), 4 * kMiB);
  CHECK(rig.pinned.allocate(4 * kMiB) == block);
  CHECK(rig.calls(Call::kSynchronizeDevice) == 1);
  rig.device->faults().clear();
}

TEST_CASE("a stream that cannot be forgotten is told why", "[pinned]") {
  PinnedRig rig;
  const Stream stream = rig.stream();
  void* const block = rig.freedInUse(stream, kMiB);
  for (const Call call : {Call::kCaptureInfo, Call::kRecordEvent}) {
    rig.device->faults().failAll(call, ErrorKind::kOther);
    CHECK_THROWS_AS(rig.pinned.forgetStream(stream), DeviceFailure);
    rig.device->faults().clear();
  }
  CHECK(rig.active() == 1);
  CHECK_THROWS_WITH(rig.pinned.forgetStream(Stream{}),
                    Catch::Matchers::ContainsSubstring("default stream"));
  rig.device->beginCapture(stream, CaptureMode::kRelaxed).orThrow();
  CHECK_THROWS_WITH(rig.pinned.forgetStream(stream),
                    Catch::Matchers::EndsWith("it is being captured"));
  rig.device->destroyGraph(rig.device->endCapture(stream).orThrow()).orThrow();
  rig.device->destroyStream(stream).orThrow();
  CHECK_THROWS_WITH(rig.pinned.forgetStream(stream), Catch::Matchers::EndsWith("it is not alive"));
  rig.device->synchronizeDevice().orThrow();
  CHECK(rig.pinned.allocate(kMiB) == block);
}

TEST_CASE("a block whose event is not recorded at its free waits until it is", "[pinned]") {
  PinnedRig rig;
  const Stream stream = rig.stream();
  rig.device->faults().failNth(Call::kRecordEvent, 1, ErrorKind::kOther);
  void* const block = rig.freedInUse(stream, kMiB);
  CHECK(rig.pinned.allocate(kMiB) != block);
  CHECK(rig.active() == 2);
  rig.sync(stream);
  CHECK(rig.pinned.allocate(kMiB) == block);
}

TEST_CASE("whatever call fails, nothing is lost", "[pinned]") {
  sim::SimConfig config;
  config.reuse_streams = true;
  bool any = true;
  for (std::uint64_t nth = 1; any; ++nth) {
    INFO("call " << nth);
    PinnedRig rig(config);
    Stream streams[] = {rig.stream(), rig.stream()};
    rig.device->faults().failNthOfAll(nth, ErrorKind::kOther);
    std::vector<void*> held;
    const auto attempt = [](auto step) {
      try {
        step();
      } catch (const Error&) {
      }
    };
    for (std::uint64_t i = 0; i < 12; ++i) {
      const std::size_t bytes = (i % 4 + 1) * 900 * kKiB;
      attempt([&] { held.push_back(rig.pinned.allocate(bytes)); });
      if (held.empty()) continue;
      void* const block = held.back();
      PinnedRig::write(block, 900 * kKiB, i);
      bool recorded = false;
      attempt([&] {
        rig.pinned.recordStream(block, streams[i % 2]);
        recorded = true;
      });
      if (recorded) rig.copy(streams[i % 2], block, 900 * kKiB, i, 10'000);
      held.pop_back();
      rig.pinned.free(block);
      if (i % 5 == 4) rig.pinned.emptyCache();
      if (i % 4 == 3) {  // another stream, of the same handle
        bool forgotten = false;
        attempt([&] {
          rig.pinned.forgetStream(streams[0]);
          forgotten = true;
        });
        if (forgotten && rig.device->destroyStream(streams[0])) {
          Result<Stream> next = rig.device->createStream();
          if (!next) next = rig.device->createStream();
          streams[0] = next.value();
        }
      }
      rig.pinned.audit();
    }
    any = rig.device->faults().hits() > 0;
    rig.device->faults().clear();
    for (const Stream stream : streams) rig.sync(stream);
    for (int i = 0; i < 2; ++i) rig.pinned.emptyCache();
    CHECK(rig.active() == 0);
    CHECK(rig.reserved() == 0);
  }
}

TEST_CASE("a wrong free is told without what pinned memory has not: streams, a log of frees",
          "[pinned]") {
  PinnedRig rig;
  std::vector<std::string> texts;
  rig.pinned.setMisuseHook([&](const Misuse& misuse) { texts.push_back(misuse.text()); });
  void* const block = rig.pinned.allocate(5'000);
  rig.pinned.free(static_cast<std::byte*>(block) + 512);
  rig.pinned.free(block);
  rig.pinned.free(block);
  REQUIRE(texts.size() == 2);
  CHECK(texts[0].find("it points 512 B into the block") != std::string::npos);
  CHECK(texts[0].find("of 5.00 KiB (pinned memory)") != std::string::npos);
  CHECK(texts[1].find("it is not allocated; it lies in the block") != std::string::npos);
  CHECK(texts[1].find(" (pinned memory), free") == texts[1].size() - 22);
}

#if CISTERN_FORKS_AMID_THREADS
TEST_CASE("a child of fork waits for no lock that a thread of its parent had", "[pinned]") {
  const int status = statusOfChild([] {
    static const auto device = sim::makeDevice({});
    static PinnedAllocator pinned(*device);
    void* const held = pinned.allocate(kMiB);
    std::atomic<bool> stopped{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; !stopped; ++round) {
          pinned.free(pinned.allocate(std::size_t(1 + round % 5) * kMiB));
          if (round % 16 == 0) pinned.emptyCache();
        }
      });
    }
    const bool all = allChildrenExit(40, [&] {
      const bool refused = isRefusedInChild([&] { (void)pinned.allocate(64); }) &&
                           isRefusedInChild([&] { pinned.recordStream(held, Stream{}); }) &&
                           isRefusedInChild([&] { pinned.setLimit(kGiB); }) &&
                           isRefusedInChild([&] { (void)pinned.limit(); }) &&
                           isRefusedInChild([&] { (void)pinned.stats(); }) &&
                           isRefusedInChild([&] { pinned.resetPeakStats(); }) &&
                           isRefusedInChild([&] { pinned.resetAccumulatedStats(); }) &&
                           isRefusedInChild([&] { (void)pinned.blockSize(held); }) &&
                           isRefusedInChild([&] { pinned.setMisuseHook({}); }) &&
                           isRefusedInChild([&] { pinned.audit(); });
      pinned.free(held);
      pinned.forgetStream(Stream{});
      pinned.emptyCache();
      if (!refused || pinned.isBlock(held)) _exit(3);
    });
    stopped = true;
    for (std::thread& thread : threads) thread.join();
    pinned.free(held);
    if (!all) _exit(3);
  });
  CHECK(status == 0);
}
#endif

}  // namespace cistern::test
