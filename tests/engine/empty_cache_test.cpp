// What goes back to the device, when it is asked for and when others need it.
#include "tests/engine/engine_support.hpp"

namespace cistern::test {

TEST_CASE("emptyCache returns what is wholly free, and no more", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    const Streams streams(allocator, 2);
    void* kept = allocator.allocate(kKiB, streams[0]);
    void* beside = allocator.allocate(kKiB, streams[0]);
    void* large = allocator.allocate(64 * kMiB, streams[1]);
    allocator.free(beside);
    allocator.emptyCache();
    CHECK(reservedOf(allocator) == mib(66));
    allocator.free(large);
    CHECK(reservedOf(allocator) == mib(66));
    allocator.emptyCache();
    CHECK(reservedOf(allocator) == mib(2));
    allocator.free(kept);
    allocator.emptyCache();
    CHECK(reservedOf(allocator) == 0);
    const MemoryStats stats = allocator.memoryStats();
    CHECK(stats.num_device_alloc == stats.num_device_free);
    allocator.audit();
  });
}

TEST_CASE("reserved bytes are what the device has given out", "[engine]") {
  SimRig rig;
  const auto agree = [&] {
    CHECK(std::uint64_t(reservedOf(rig.allocator)) == takenOf(rig.sim()));
    CHECK(nowOf(rig.allocator, Stat::kSegment) ==
          std::int64_t(rig.allocator.memoryStats().num_device_alloc -
                       rig.allocator.memoryStats().num_device_free));
  };
  std::vector<void*> blocks;
  for (std::size_t bytes : {kKiB, 3 * kMiB, 11 * kMiB, 64 * kMiB, 100 * kMiB}) {
    blocks.push_back(rig.allocator.allocate(bytes));
    agree();
  }
  for (void* block : blocks) {
    rig.allocator.free(block);
    rig.allocator.emptyCache();
    agree();
  }
  CHECK(takenOf(rig.sim()) == 0);
}

TEST_CASE("a destroyed allocator has given everything back, held or not", "[engine]") {
  SimWork work(simOf(kGiB));
  {
    CachingAllocator allocator(work.device(), optionsOf());
    const Stream user = work.sim().createStream().orThrow();
    for (int i = 0; i < 10; ++i) {
      void* block = allocator.allocate(std::size_t(i + 1) * kMiB);
      if (i % 2 == 0) allocator.recordStream(block, user);
      work.delay(user, kLongNs);
      if (i % 3 == 0) allocator.free(block);
    }
    CHECK(takenOf(work.sim()) > 0);
  }
  CHECK(takenOf(work.sim()) == 0);
  CHECK(countOf(work.sim(), Call::kCreateEvent) == countOf(work.sim(), Call::kDestroyEvent));
}

TEST_CASE("another program's use of the device is answered by giving the cache back", "[engine]") {
  SimRig rig("", simOf(128 * kMiB));
  rig.allocator.free(rig.allocator.allocate(60 * kMiB));
  CHECK(rig.sim().foreignUse(60 * kMiB) == 60 * kMiB);
  void* block = rig.allocator.allocate(66 * kMiB);
  CHECK(reservedOf(rig.allocator) == mib(66));
  rig.sim().foreignUse(kGiB);
  CHECK_THROWS_AS(rig.allocator.allocate(2 * kMiB), OutOfMemory);
  rig.allocator.free(block);
  CHECK(rig.allocator.allocate(2 * kMiB) == block);
}

TEST_CASE("a size that grows by one percent each time does not pile up", "[engine]") {
  SimRig rig("", simOf(8 * kGiB));
  double bytes = 8.0 * double(kMiB);
  for (int i = 0; i < 500; ++i, bytes *= 1.01) {
    const std::size_t asked = std::min(std::size_t(bytes), std::size_t(4 * kGiB));
    rig.allocator.free(rig.allocator.allocate(asked));
  }
  CHECK(reservedOf(rig.allocator) <= std::int64_t(8 * kGiB));
}

}  // namespace cistern::test
