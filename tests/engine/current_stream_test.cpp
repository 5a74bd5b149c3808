// On which stream a block is that no stream was named for.
#include <thread>

#include "allocator/engine/engine.hpp"
#include "allocator/reports/accounting.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

/// The stream that a block held in the default pool is on.
Stream streamOf(CachingAllocator& allocator, void* block) {
  for (const LiveBlock& live : liveBlocks(allocator.engine().default_pool)) {
    if (live.address == toAddress(block)) return live.stream;
  }
  throw Error("not a block that is held");
}

}  // namespace

TEST_CASE("a request that names no stream is for the thread's current one", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    const Streams streams(work.device(), 2);
    const int device = work.device().ordinal();
    const auto isOn = [&](Stream stream) {
      void* block = allocator.allocate(4 * kMiB);
      const bool there = streamOf(allocator, block) == stream;
      allocator.free(block);
      return there;
    };
    CHECK(isOn(Stream{}));
    {
      const StreamGuard outer(streams[0], device);
      CHECK(isOn(streams[0]));
      {
        const StreamGuard inner(streams[1], device);
        CHECK(isOn(streams[1]));
      }
      CHECK(isOn(streams[0]));
    }
    CHECK(isOn(Stream{}));
  });
}

TEST_CASE("requests with and without the stream's name share one cache", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    const Streams streams(work.device(), 2);
    const StreamGuard guard(streams[0], work.device().ordinal());
    void* block = allocator.allocate(4 * kMiB);
    work.delay(streams[0], kLongNs);
    work.fill(streams[0], toAddress(block), 4 * kMiB, 1);
    allocator.free(block);
    const CallCounts before = work.device().callCounts();
    CHECK(allocator.allocate(4 * kMiB, streams[0]) == block);  // at once, in stream order
    allocator.free(block);
    CHECK(allocator.allocate(4 * kMiB) == block);
    CHECK(work.device().callCounts() == before);
    CHECK(allocator.allocate(4 * kMiB, streams[1]) != block);
    CHECK(allocator.allocate(4 * kMiB, Stream{}) != block);
  });
}

TEST_CASE("each device has a current stream of its own, and each thread", "[engine]") {
  sim::SimConfig config = simOf(kGiB);
  SimRig first("", config);
  config.ordinal = 1;
  SimRig second("", config);
  const Stream here = first.stream(), there = second.stream();
  const StreamGuard on_first(here, 0);
  CHECK(streamOf(first.allocator, first.allocator.allocate(kMiB)) == here);
  CHECK(streamOf(second.allocator, second.allocator.allocate(kMiB)) == Stream{});
  const StreamGuard on_second(there, 1);
  CHECK(streamOf(first.allocator, first.allocator.allocate(kMiB)) == here);
  // The allocator's device counts, not the thread's.
  const DeviceGuard device(0);
  CHECK(streamOf(second.allocator, second.allocator.allocate(kMiB)) == there);
  std::thread([&] {
    CHECK(streamOf(first.allocator, first.allocator.allocate(kMiB)) == Stream{});
  }).join();
}

TEST_CASE("a request for nothing, and one for too much, ask for the current stream too",
          "[engine]") {
  SimRig rig("", simOf(64 * kMiB));
  const Stream stream = rig.stream();
  const StreamGuard guard(stream);
  CHECK(rig.allocator.allocate(0) == nullptr);
  try {
    (void)rig.allocator.allocate(kGiB);
    FAIL("1 GiB out of 64 MiB");
  } catch (const OutOfMemory& error) {
    CHECK(error.report().stream == stream);
  }
}

TEST_CASE("a current stream that is forgotten is refused as one that is named", "[engine]") {
  SimRig rig;
  const Stream gone = rig.stream();
  rig.sim().destroyStream(gone).orThrow();
  const StreamGuard guard(gone);
  CHECK_THROWS_AS(rig.allocator.allocate(kMiB), InvalidArgument);
}

}  // namespace cistern::test
