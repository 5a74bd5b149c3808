// The steps of a miss, each shown to serve where the ones before it cannot.
#include "tests/engine/engine_support.hpp"

namespace cistern::test {

TEST_CASE("a miss first looks whether work elsewhere has completed", "[engine]") {
  SimRig rig;
  const Stream own = rig.stream(), user = rig.stream();
  void* block = rig.allocator.allocate(20 * kMiB, own);
  rig.allocator.recordStream(block, user);
  rig.touch(user, block);
  rig.allocator.free(block);
  rig.sim().synchronizeDevice().orThrow();
  const std::uint64_t from_device = rig.allocator.memoryStats().num_device_alloc;
  CHECK(rig.allocator.allocate(20 * kMiB, own) == block);
  CHECK(rig.allocator.memoryStats().num_device_alloc == from_device);
  CHECK(reservedOf(rig.allocator) == mib(20));
  CHECK(countOf(rig.sim(), Call::kMalloc) == (onPages(rig.allocator) ? 0 : 1));
}

TEST_CASE("a callback that frees something saves the request", "[engine]") {
  SimRig rig("", simOf(64 * kMiB));
  CachingAllocator& allocator = rig.allocator;
  void* spare = allocator.allocate(40 * kMiB);
  int idle_calls = 0, freeing_calls = 0;
  allocator.registerReclaimCallback([&] { return ++idle_calls < 0; });
  allocator.registerReclaimCallback([&] {
    ++freeing_calls;
    allocator.memoryStats();  // no lock is held
    allocator.free(std::exchange(spare, nullptr));
    return true;
  });
  void* block = allocator.allocate(50 * kMiB);
  CHECK(block != nullptr);
  CHECK(idle_calls == 1);
  CHECK(freeing_calls == 1);
  allocator.free(block);
  void* hit = allocator.allocate(50 * kMiB);
  CHECK(freeing_calls == 1);
  allocator.free(hit);
}

TEST_CASE("garbage collection gives back what was idle longest, above its threshold only",
          "[engine]") {
  SimRig rig("backing:segments,garbage_collection_threshold:0.5", simOf(200 * kMiB));
  CachingAllocator& allocator = rig.allocator;
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(allocator.allocate(20 * kMiB));
  for (void* block : blocks) allocator.free(block);
  void* below = allocator.allocate(22 * kMiB);  // 80 of 100 were reserved: nothing is collected
  CHECK(reservedOf(allocator) == mib(102));
  void* young = allocator.allocate(24 * kMiB);  // above: the old 20s go, until it is below
  CHECK(reservedOf(allocator) == mib(82 + 24));
  CHECK(countOf(rig.sim(), Call::kFree) == 1);
  allocator.free(young);
  void* more = allocator.allocate(26 * kMiB);
  CHECK(allocator.allocate(24 * kMiB) == young);  // was not old enough to go
  allocator.free(below);
  allocator.free(more);
}

TEST_CASE("garbage collection spares what was idle for less than the mean time", "[engine]") {
  SimRig rig("backing:segments,garbage_collection_threshold:0.5", simOf(200 * kMiB));
  CachingAllocator& allocator = rig.allocator;
  allocator.free(allocator.allocate(20 * kMiB));
  std::vector<void*> blocks, small;
  for (int i = 0; i < 3; ++i) blocks.push_back(allocator.allocate(24 * kMiB));
  for (int i = 0; i < 8; ++i) small.push_back(allocator.allocate(kMiB));
  for (void* block : blocks) allocator.free(block);
  CHECK(reservedOf(allocator) == mib(100));
  allocator.setLimit(150 * kMiB);  // the threshold is 75, below what the young ones make
  void* block = allocator.allocate(30 * kMiB);  // the old 20 goes
  CHECK(reservedOf(allocator) == mib(100 - 20 + 30));
  allocator.free(block);
  for (void* one : small) allocator.free(one);
}

TEST_CASE("cached memory makes room for what does not fit beside it", "[engine]") {
  SimRig rig("", simOf(100 * kMiB));
  CachingAllocator& allocator = rig.allocator;
  std::vector<void*> blocks;
  for (std::size_t bytes : {12 * kMiB, 30 * kMiB, 20 * kMiB, 16 * kMiB}) {
    blocks.push_back(allocator.allocate(bytes));
  }
  void* kept = blocks[0];
  for (void* block : blocks) {
    if (block != kept) allocator.free(block);
  }
  void* first = allocator.allocate(20 * kMiB);  // cached: nothing is given back
  CHECK(reservedOf(allocator) == mib(78));
  CHECK(allocator.memoryStats().num_alloc_retries == 0);
  allocator.free(first);
  void* second = allocator.allocate(80 * kMiB);
  CHECK(reservedOf(allocator) == mib(92));
  // Segments go back to the device for it; pages are moved to where they are needed.
  CHECK(allocator.memoryStats().num_alloc_retries == (onPages(allocator) ? 0 : 1));
  CHECK((allocator.memoryStats().num_device_free == 0) == onPages(allocator));
  allocator.free(second);
  allocator.free(kept);
}

TEST_CASE("cached memory of other streams is given back too", "[engine]") {
  SimRig rig("cross_stream_reuse:false", simOf(100 * kMiB));
  const Stream a = rig.stream(), b = rig.stream();
  rig.allocator.free(rig.allocator.allocate(60 * kMiB, a));
  rig.allocator.free(rig.allocator.allocate(80 * kMiB, b));
  CHECK(reservedOf(rig.allocator) == mib(80));
}

TEST_CASE("the host waits for pending frees before it gives up, one stream at a time", "[engine]") {
  SimRig rig("cross_stream_reuse:false", simOf(64 * kMiB, 1'000));
  const Stream own = rig.stream(), quick = rig.stream(), slow = rig.stream();
  void* block = rig.allocator.allocate(40 * kMiB, own);
  void* other = rig.allocator.allocate(20 * kMiB, own);
  rig.allocator.recordStream(block, quick);
  rig.allocator.recordStream(other, slow);
  rig.work.delay(quick, kLongNs);
  rig.work.delay(slow, 1'000 * kLongNs);
  rig.touch(quick, block);
  rig.touch(slow, other);
  rig.allocator.free(block);
  rig.allocator.free(other);
  void* again = rig.allocator.allocate(40 * kMiB, own);
  CHECK(again == block);
  CHECK(rig.sim().now() < 100 * kLongNs);
  CHECK(rig.allocator.memoryStats().num_sync_all_streams == 1);
  rig.touch(own, again);
}

TEST_CASE("waiting passes over what never ends", "[engine]") {
  SimRig rig("cross_stream_reuse:false", simOf(64 * kMiB, 1'000));
  const Stream own = rig.stream(), stuck = rig.stream(), user = rig.stream();
  void* lost = rig.allocator.allocate(20 * kMiB, own);
  void* block = rig.allocator.allocate(40 * kMiB, own);
  rig.allocator.recordStream(lost, stuck);
  rig.allocator.recordStream(block, user);
  rig.neverEnd(stuck);
  rig.work.delay(user, kLongNs);
  rig.allocator.free(lost);
  rig.allocator.free(block);
  CHECK(rig.allocator.allocate(40 * kMiB, own) == block);
  CHECK_THROWS_AS(rig.allocator.allocate(20 * kMiB, own), OutOfMemory);
}

TEST_CASE("under pressure memory in use by queued work is taken in stream order", "[engine]") {
  SimRig rig("", simOf(64 * kMiB, 50'000));
  const Stream a = rig.stream(), b = rig.stream();
  void* block = rig.allocator.allocate(60 * kMiB, a);
  rig.touch(a, block);
  rig.work.delay(a, kLongNs);
  rig.touch(a, block);
  rig.allocator.free(block);
  const std::uint64_t before = rig.sim().now();
  void* borrowed = rig.allocator.allocate(30 * kMiB, b);
  rig.touch(b, borrowed);
  if (!onPages(rig.allocator)) CHECK(borrowed == block);
  CHECK(reservedOf(rig.allocator) == (onPages(rig.allocator) ? mib(64) : mib(60)));
  CHECK(rig.sim().now() - before < kLongNs / 10);  // nobody waited on the host
  CHECK(countOf(rig.sim(), Call::kWaitEvent) == 1);
  void* rest = rig.allocator.allocate(28 * kMiB, a);  // its own stream's order is enough
  rig.touch(a, rest);
  rig.allocator.free(borrowed);
  rig.allocator.free(rest);
  // A guest is waited for on the host; pages come back as they went, in stream order.
  void* all = rig.allocator.allocate(60 * kMiB, a);
  rig.touch(a, all);
  CHECK((rig.sim().now() - before >= kLongNs) == !onPages(rig.allocator));
}

TEST_CASE("an order that the device refuses to make is no reason to share", "[engine]") {
  SimRig rig("", simOf(64 * kMiB, 50'000));
  const Stream a = rig.stream(), b = rig.stream();
  void* block = rig.allocator.allocate(40 * kMiB, a);
  rig.touch(a, block);
  rig.work.delay(a, kLongNs);
  rig.allocator.free(block);
  rig.sim().faults().failAll(Call::kWaitEvent);
  void* first = rig.allocator.allocate(40 * kMiB, b);  // given back, after a wait, and taken anew
  rig.touch(b, first);
  rig.sim().faults().clear();
  rig.allocator.audit();
  rig.allocator.free(first);
}

}  // namespace cistern::test
