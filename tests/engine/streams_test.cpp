// Who may use a freed block next, and when.
#include "allocator/base/bounds.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {

TEST_CASE("a freed block is reused by the same stream at once, and no other", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    const Streams streams(allocator, 2);
    void* block = allocator.allocate(4 * kMiB, streams[0]);
    work.delay(streams[0], kLongNs);
    work.fill(streams[0], toAddress(block), 4 * kMiB, 1);
    allocator.free(block);
    void* elsewhere = allocator.allocate(4 * kMiB, streams[1]);
    CHECK(elsewhere != block);
    CHECK(allocator.allocate(4 * kMiB, streams[0]) == block);
    allocator.free(block);
    allocator.free(elsewhere);
    allocator.audit();
  });
}

TEST_CASE("a same-stream hit makes no device call", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    CachingAllocator allocator(work.device(), optionsOf());
    for (std::size_t bytes : {kKiB, 3 * kMiB, 30 * kMiB}) allocator.free(allocator.allocate(bytes));
    const CallCounts before = work.device().callCounts();
    for (int i = 0; i < 100; ++i) {
      for (std::size_t bytes : {kKiB, 3 * kMiB, 30 * kMiB}) {
        allocator.free(allocator.allocate(bytes));
      }
    }
    CHECK(work.device().callCounts() == before);
  });
}

TEST_CASE("what a stream has completed serves another stream", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    const Streams streams(allocator, 2);
    for (std::size_t bytes : {kMiB, 8 * kMiB, 64 * kMiB}) {
      void* block = allocator.allocate(bytes, streams[0]);
      work.fill(streams[0], toAddress(block), bytes, 1);
      allocator.free(block);
      work.device().synchronizeStream(streams[0]).orThrow();
      const std::int64_t reserved = reservedOf(allocator);
      void* again = allocator.allocate(bytes, streams[1]);
      if (!onPages(allocator)) CHECK(again == block);
      CHECK(reservedOf(allocator) == reserved);
      allocator.audit();
      allocator.free(again);
    }
  });
}

TEST_CASE("streams used once do not strand their memory", "[engine][gpu-too]") {
  if (kTightBounds) return skipped("bounds are tight");  // a mark of 64 streams takes more looks
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    const Streams streams(allocator, 64);
    for (std::size_t i = 0; i < streams.size(); ++i) {
      void* block = allocator.allocate(kGiB, streams[i]);
      work.fill(streams[i], toAddress(block), kKiB, 1);
      allocator.free(block);
      work.device().synchronizeStream(streams[i]).orThrow();
    }
    CHECK(reservedOf(allocator) == std::int64_t(kGiB));
    allocator.audit();
  });
}

TEST_CASE("streams used once do not strand memory of mixed sizes", "[engine]") {
  if (kTightBounds) return skipped("bounds are tight");  // a mark of 64 streams takes more looks
  SimRig rig("background_thread:false", simOf(8 * kGiB, 5'000));
  for (int i = 0; i < 64; ++i) {
    const Stream stream = rig.stream();
    void* small = rig.allocator.allocate(300 * kKiB, stream);
    void* large = rig.allocator.allocate(kGiB - std::size_t(i) * kMiB, stream);
    rig.touch(stream, small);
    rig.touch(stream, large);
    rig.allocator.free(small);
    rig.allocator.free(large);
    rig.sim().synchronizeStream(stream).orThrow();
  }
  CHECK(reservedOf(rig.allocator) <= std::int64_t(kGiB + 2 * kMiB));
}

TEST_CASE("an adopted segment is the new stream's own from then on", "[engine]") {
  SimRig rig;
  const Stream a = rig.stream(), b = rig.stream();
  rig.allocator.free(rig.allocator.allocate(40 * kMiB, a));
  void* first = rig.allocator.allocate(20 * kMiB, b);
  rig.touch(b, first);
  rig.allocator.free(first);
  CHECK(rig.allocator.allocate(40 * kMiB, b) == first);  // at once, in stream order
  CHECK(reservedOf(rig.allocator) == mib(40));
}

TEST_CASE("where there is no room to grow, a guest takes part of another stream's segment",
          "[engine]") {
  SimRig rig("backing:segments,limit:20M", simOf(kGiB, 1'000));
  const Stream owner = rig.stream(), guest = rig.stream();
  void* held = rig.allocator.allocate(4 * kMiB, owner);
  void* block = rig.allocator.allocate(6 * kMiB, guest);
  CHECK(reservedOf(rig.allocator) == mib(20));
  CHECK(rig.allocator.getBaseAllocation(block).base == held);
  rig.work.delay(guest, kLongNs);
  rig.touch(guest, block);
  rig.allocator.free(block);
  void* own = rig.allocator.allocate(16 * kMiB, owner);  // waits for the guest's work
  CHECK(own == block);
  CHECK(rig.sim().now() >= kLongNs);
  rig.touch(owner, own);
  rig.allocator.free(own);
  rig.allocator.free(held);
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("the rest of an adopted segment serves third streams where there is no more room",
          "[engine]") {
  SimRig rig("limit:40M");
  const Stream a = rig.stream(), b = rig.stream(), c = rig.stream();
  rig.allocator.free(rig.allocator.allocate(40 * kMiB, a));
  void* first = rig.allocator.allocate(20 * kMiB, b);
  const std::uint64_t orders = countOf(rig.sim(), Call::kWaitEvent);
  void* second = rig.allocator.allocate(20 * kMiB, c);
  CHECK(countOf(rig.sim(), Call::kWaitEvent) == orders);  // complete: nothing to wait for
  CHECK(reservedOf(rig.allocator) == mib(40));
  rig.allocator.free(first);
  rig.allocator.free(second);
}

TEST_CASE("reuse between streams can be switched off", "[engine]") {
  SimRig rig("cross_stream_reuse:false", simOf(64 * kMiB));
  const Stream a = rig.stream(), b = rig.stream();
  void* held = rig.allocator.allocate(2 * kMiB, a);
  rig.allocator.free(rig.allocator.allocate(10 * kMiB, a));
  rig.sim().synchronizeDevice().orThrow();
  void* block = rig.allocator.allocate(10 * kMiB, b);
  CHECK(rig.allocator.getBaseAllocation(block).base != rig.allocator.getBaseAllocation(held).base);
  if (onPages(rig.allocator)) {
    CHECK(rig.allocator.memoryStats().pages.recycled == 0);
    CHECK(reservedOf(rig.allocator) >= mib(2 + 10 + 10));
    // Less than the device has when all that lies free is given back.
    CHECK_THROWS_AS(rig.allocator.allocate(54 * kMiB, b), OutOfMemory);
  } else {
    CHECK(reservedOf(rig.allocator) == mib(30));
    CHECK_THROWS_AS(rig.allocator.allocate(36 * kMiB, b), OutOfMemory);
  }
  CHECK(countOf(rig.sim(), Call::kWaitEvent) == 0);
}

TEST_CASE("work that never ends on one stream does not block allocation on another", "[engine]") {
  SimRig rig("", simOf(256 * kMiB));
  const Stream stuck = rig.stream(), other = rig.stream();
  void* held = rig.allocator.allocate(64 * kMiB, stuck);
  rig.touch(stuck, held);
  rig.neverEnd(stuck);
  rig.allocator.recordStream(rig.allocator.allocate(4 * kMiB, other), stuck);
  rig.allocator.free(held);
  const CallCounts before = rig.sim().callCounts();
  void* block = rig.allocator.allocate(100 * kMiB, other);
  void* small = rig.allocator.allocate(1, other);
  for (Call call : {Call::kSynchronizeEvent, Call::kSynchronizeStream, Call::kSynchronizeDevice}) {
    CHECK(rig.sim().callCounts()[std::size_t(call)] == before[std::size_t(call)]);
  }
  rig.touch(other, block);
  rig.allocator.free(block);
  rig.allocator.free(small);
  CHECK(rig.allocator.allocate(100 * kMiB, other) == block);
}

}  // namespace cistern::test
