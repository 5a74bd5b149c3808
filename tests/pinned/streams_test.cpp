// When a block that streams use is free again.
#include "tests/pinned/pinned_support.hpp"

namespace cistern::test {

TEST_CASE("events are used again", "[pinned]") {
  PinnedRig rig;
  const Stream stream = rig.stream();
  for (int i = 0; i < 100; ++i) {
    (void)rig.freedInUse(stream, kMiB);
    rig.sync(stream);
  }
  CHECK(rig.calls(Call::kCreateEvent) == 1);
  CHECK(rig.reserved() == std::int64_t(2 * kMiB));
}

TEST_CASE("of many blocks that wait on a stream the oldest alone is asked about", "[pinned]") {
  PinnedRig rig;
  const Stream stream = rig.stream();
  for (int i = 0; i < 50; ++i) (void)rig.freedInUse(stream, 1'000);
  const std::uint64_t before = rig.calls(Call::kQueryEvent);
  (void)rig.pinned.allocate(1'000);
  CHECK(rig.calls(Call::kQueryEvent) - before == 1);
}

TEST_CASE("work that never ends on one stream keeps nobody else's memory", "[pinned]") {
  PinnedRig rig;
  const Stream stuck = rig.stream(), other = rig.stream();
  rig.device->launch(stuck, {"never ends", {}, sim::kNever, {}}).orThrow();
  void* const kept = rig.pinned.allocate(kMiB);
  rig.pinned.recordStream(kept, stuck);
  rig.pinned.free(kept);
  void* const used = rig.freedInUse(other, kMiB);
  rig.sync(other);
  CHECK(rig.pinned.allocate(kMiB) == used);
}

TEST_CASE("a stream that was forgotten may be destroyed before its blocks are freed", "[pinned]") {
  for (const bool freed_before : {false, true}) {
    PinnedRig rig;
    const Stream stream = rig.stream();
    void* const block = rig.pinned.allocate(kMiB);
    PinnedRig::write(block, kMiB, 1);
    rig.copy(stream, block, kMiB, 1);
    rig.pinned.recordStream(block, stream);
    if (freed_before) rig.pinned.free(block);
    rig.pinned.forgetStream(stream);
    rig.device->destroyStream(stream).orThrow();
    if (!freed_before) rig.pinned.free(block);
    void* const other = rig.pinned.allocate(kMiB);
    CHECK(other != block);
    CHECK(rig.device->callsOnDeadStreams() == 0);
    rig.device->synchronizeDevice().orThrow();
    CHECK(rig.pinned.allocate(kMiB) == block);
  }
}

TEST_CASE("a new stream of the same handle is another one", "[pinned]") {
  sim::SimConfig config;
  config.reuse_streams = true;
  const auto device = sim::makeDevice(config);
  PinnedAllocator pinned(*device);
  const Stream first = device->createStream().orThrow();
  void* const block = pinned.allocate(kMiB);
  pinned.recordStream(block, first);
  pinned.forgetStream(first);
  device->destroyStream(first).orThrow();
  const Stream second = device->createStream().orThrow();
  REQUIRE(second == first);
  device->launch(second, {"copy", {}, kLateNs, {}}).orThrow();
  pinned.recordStream(block, second);
  pinned.free(block);
  CHECK(pinned.allocate(kMiB) != block);
  device->synchronizeDevice().orThrow();
  CHECK(pinned.allocate(kMiB) == block);
  pinned.audit();
}

TEST_CASE("a stream that is gone without notice is known to be done with the device", "[pinned]") {
  PinnedRig rig;
  const Stream stream = rig.stream();
  void* const block = rig.pinned.allocate(kMiB);
  rig.copy(stream, block, kMiB, 0);
  PinnedRig::write(block, kMiB, 0);
  rig.pinned.recordStream(block, stream);
  rig.device->destroyStream(stream).orThrow();
  rig.pinned.free(block);
  CHECK(rig.pinned.allocate(kMiB) != block);
  CHECK(rig.waits() == 0);
  rig.pinned.emptyCache();
  CHECK(rig.calls(Call::kSynchronizeDevice) == 1);
  CHECK(rig.pinned.allocate(kMiB) == block);
}

TEST_CASE("a stream that is gone without notice does not hold up the next of its handle",
          "[pinned]") {
  sim::SimConfig config;
  config.reuse_streams = true;
  PinnedRig rig(config);
  const Stream gone = rig.stream();
  void* const lost = rig.pinned.allocate(kMiB);
  PinnedRig::write(lost, kMiB, 1);
  rig.copy(gone, lost, kMiB, 1);
  rig.pinned.recordStream(lost, gone);
  rig.device->destroyStream(gone).orThrow();
  rig.pinned.free(lost);
  const Stream next = rig.stream();
  REQUIRE(next == gone);
  for (std::uint64_t i = 2; i < 20; ++i) {
    void* const block = rig.freedInUse(next, kMiB, i);
    CHECK(block != lost);
    rig.sync(next);
  }
  CHECK(rig.reserved() == std::int64_t(2 * kMiB));
  rig.pinned.emptyCache();
  CHECK(rig.calls(Call::kSynchronizeDevice) == 1);
  CHECK(rig.active() == 0);
}

TEST_CASE("one wait for the device ends all uses of streams that are gone without notice",
          "[pinned]") {
  PinnedRig rig;
  for (int i = 0; i < 5; ++i) {
    const Stream stream = rig.stream();
    void* const block = rig.pinned.allocate(kMiB);
    rig.pinned.recordStream(block, stream);
    rig.device->destroyStream(stream).orThrow();
    rig.pinned.free(block);
  }
  CHECK(rig.active() == 5);
  rig.pinned.emptyCache();
  CHECK(rig.calls(Call::kSynchronizeDevice) == 1);
  CHECK(rig.pinned.stats().num_waits == 1);
  CHECK(rig.reserved() == 0);
}

TEST_CASE("a stream that was met before is refused once it is not alive", "[pinned]") {
  PinnedRig rig;
  const Stream stream = rig.stream();
  void* const block = rig.pinned.allocate(kMiB);
  void* const other = rig.pinned.allocate(kMiB);
  rig.pinned.recordStream(block, stream);
  rig.device->destroyStream(stream).orThrow();
  CHECK_THROWS_WITH(rig.pinned.recordStream(other, stream),
                    Catch::Matchers::ContainsSubstring("not a live stream"));
  rig.pinned.free(other);
  CHECK(rig.active() == 1);
  rig.pinned.free(block);
}

TEST_CASE("a stream that is not alive is refused", "[pinned]") {
  PinnedRig rig;
  void* const block = rig.pinned.allocate(kMiB);
  const Stream stream = rig.stream();
  rig.device->destroyStream(stream).orThrow();
  CHECK_THROWS_WITH(rig.pinned.recordStream(block, stream),
                    Catch::Matchers::ContainsSubstring("not a live stream"));
  rig.pinned.free(block);
  CHECK(rig.active() == 0);
}

TEST_CASE("a block is used on streams of several devices", "[pinned]") {
  sim::SimConfig config;
  config.ordinal = 1;
  const auto second = sim::makeDevice(config);  // outlives the allocator
  PinnedRig rig;
  const Stream there = second->createStream().orThrow();
  second->launch(there, {"copy", {}, kLateNs, {}}).orThrow();
  void* const block = rig.pinned.allocate(kMiB);
  rig.pinned.recordStream(block, there, *second);
  rig.pinned.free(block);
  CHECK(rig.pinned.allocate(kMiB) != block);
  second->synchronizeStream(there).orThrow();
  CHECK(rig.pinned.allocate(kMiB) == block);
}

TEST_CASE("a block that several devices use waits for each of them", "[pinned]") {
  sim::SimConfig config;
  config.ordinal = 1;
  const auto second = sim::makeDevice(config);  // outlives the allocator
  PinnedRig rig;
  const Stream here = rig.stream(), there = second->createStream().orThrow();
  void* const block = rig.pinned.allocate(kMiB);
  PinnedRig::write(block, kMiB, 1);
  rig.copy(here, block, kMiB, 1);
  second->launch(there, {"copy", {}, kLateNs, {}}).orThrow();
  rig.pinned.recordStream(block, there, *second);
  rig.pinned.recordStream(block, here);
  rig.pinned.free(block);
  rig.sync(here);
  CHECK(rig.pinned.allocate(kMiB) != block);
  rig.pinned.audit();
  second->synchronizeStream(there).orThrow();
  CHECK(rig.pinned.allocate(kMiB) == block);
}

}  // namespace cistern::test
