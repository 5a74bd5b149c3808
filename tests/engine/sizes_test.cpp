// How large a block is, and where in its segment it lies.
#include "tests/engine/engine_support.hpp"

namespace cistern::test {

TEST_CASE("a request is rounded up to 512 bytes", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    const std::pair<std::size_t, std::size_t> sizes[] = {{1, 512},
                                                         {511, 512},
                                                         {512, 512},
                                                         {513, 1024},
                                                         {100'000, 100'352},
                                                         {kMiB - 1, kMiB},
                                                         {kMiB, kMiB},
                                                         {kMiB + 1, kMiB + 512},
                                                         {3 * kMiB + 7, 3 * kMiB + 512}};
    for (const auto& [asked, given] : sizes) {
      void* block = allocator.allocate(asked);
      CHECK(allocator.blockSize(block) == given);
      CHECK(toAddress(block) % 512 == 0);
      CHECK(nowOf(allocator, Stat::kRequestedBytes) == std::int64_t(asked));
      CHECK(nowOf(allocator, Stat::kAllocatedBytes) == std::int64_t(given));
      allocator.free(block);
    }
    allocator.audit();
  });
}

TEST_CASE("an allocator owns addresses that it hands out, and nothing else", "[engine]") {
  SimRig rig;
  void* const small = rig.allocator.allocate(512);
  void* const large = rig.allocator.allocate(48 * kMiB);
  CHECK(rig.allocator.owns(small));
  CHECK(rig.allocator.owns(large));
  CHECK(rig.allocator.owns(toPointer(toAddress(large) + 40 * kMiB)));
  CHECK_FALSE(rig.allocator.owns(nullptr));
  CHECK_FALSE(rig.allocator.owns(&rig));
  CHECK_FALSE(rig.allocator.owns(toPointer(~Address{0})));
  rig.allocator.free(small);
  rig.allocator.free(large);
}

TEST_CASE("no bytes are a null pointer, and a null pointer may be freed", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    CachingAllocator allocator(work.device(), optionsOf());
    const CallCounts calls = work.device().callCounts();
    CHECK(allocator.allocate(0) == nullptr);
    allocator.free(nullptr);
    allocator.recordStream(nullptr, Stream{});
    CHECK(work.device().callCounts() == calls);
    CHECK(allocator.memoryStats().num_misuses == 0);
  });
}

TEST_CASE("requests up to 1 MiB are small, above they are large", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    CachingAllocator allocator(work.device(), optionsOf());
    void* small = allocator.allocate(kMiB);
    MemoryStats stats = allocator.memoryStats();
    CHECK(stats.small_pool[std::size_t(Stat::kAllocation)].current == 1);
    CHECK(stats.large_pool[std::size_t(Stat::kAllocation)].current == 0);
    void* large = allocator.allocate(kMiB + 1);
    stats = allocator.memoryStats();
    CHECK(stats.small_pool[std::size_t(Stat::kAllocation)].current == 1);
    CHECK(stats.large_pool[std::size_t(Stat::kAllocation)].current == 1);
    CHECK(allocator.getBaseAllocation(small).base != allocator.getBaseAllocation(large).base);
    allocator.free(small);
    allocator.free(large);
  });
}

TEST_CASE("segments are 2 MiB for small, 20 MiB for medium, the size rounded to 2 MiB for large",
          "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    CachingAllocator allocator(work.device(), optionsOf("backing:segments"));
    const std::pair<std::size_t, std::size_t> segments[] = {{1, 2 * kMiB},
                                                            {kMiB, 2 * kMiB},
                                                            {kMiB + 1, 20 * kMiB},
                                                            {10 * kMiB - 1, 10 * kMiB},
                                                            {10 * kMiB - 512, 20 * kMiB},
                                                            {10 * kMiB, 10 * kMiB},
                                                            {21 * kMiB, 22 * kMiB},
                                                            {64 * kMiB, 64 * kMiB}};
    for (const auto& [asked, bytes] : segments) {
      void* block = allocator.allocate(asked);
      const BaseAllocation base = allocator.getBaseAllocation(block);
      CHECK(base.base == block);  // the low part is handed out
      CHECK(base.bytes == bytes);
      CHECK(reservedOf(allocator) == std::int64_t(bytes));
      allocator.free(block);
      allocator.emptyCache();
      CHECK(reservedOf(allocator) == 0);
    }
    allocator.audit();
  });
}

TEST_CASE("blocks are handed out from low addresses up, and share a segment while it has room",
          "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    CachingAllocator allocator(work.device(), optionsOf());
    std::vector<void*> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(allocator.allocate(512 * kKiB));
    for (std::size_t i = 1; i < blocks.size(); ++i) {
      CHECK(toAddress(blocks[i]) == toAddress(blocks[0]) + i * 512 * kKiB);
    }
    CHECK(reservedOf(allocator) == mib(2));
    blocks.push_back(allocator.allocate(1));
    CHECK(reservedOf(allocator) == mib(4));
    for (void* block : blocks) allocator.free(block);
    allocator.audit();
  });
}

TEST_CASE("any small remainder is split off, a large one of a segment only above 1 MiB",
          "[engine]") {
  SimRig rig;
  CachingAllocator& allocator = rig.allocator;
  void* small = allocator.allocate(2 * kMiB - 512 - kMiB);  // leaves 1 MiB + 512
  void* filler = allocator.allocate(kMiB);                  // leaves 512
  CHECK(nowOf(allocator, Stat::kInactiveSplitBytes) == 512);
  void* last = allocator.allocate(1);
  CHECK(nowOf(allocator, Stat::kInactiveSplit) == 0);
  CHECK(reservedOf(allocator) == mib(2));

  void* whole = allocator.allocate(11 * kMiB);  // of 12
  void* split = nullptr;
  if (onPages(allocator)) {
    CHECK(allocator.blockSize(whole) == 11 * kMiB);
    CHECK(nowOf(allocator, Stat::kInactiveSplitBytes) == mib(1));
    split = allocator.allocate(13 * kMiB - 512);  // 12 more, behind the 1 that is left
    CHECK(toAddress(split) == toAddress(whole) + 11 * kMiB);
    CHECK(allocator.blockSize(split) == 13 * kMiB - 512);
    CHECK(nowOf(allocator, Stat::kInactiveSplitBytes) == 512);
  } else {
    CHECK(allocator.blockSize(whole) == 12 * kMiB);  // the last 1 MiB is not split off
    CHECK(nowOf(allocator, Stat::kInactiveSplit) == 0);
    split = allocator.allocate(11 * kMiB - 512);  // of 12: 1 MiB + 512 are
    CHECK(allocator.blockSize(split) == 11 * kMiB - 512);
    CHECK(nowOf(allocator, Stat::kInactiveSplitBytes) == std::int64_t(kMiB + 512));
  }
  for (void* block : {small, filler, last, whole, split}) allocator.free(block);
}

TEST_CASE("neighbours that are free become one block again", "[engine]") {
  SimRig rig;
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(rig.allocator.allocate(256 * kKiB));
  for (int i : {1, 5, 3, 7, 0, 6, 2, 4}) {
    rig.allocator.free(blocks[std::size_t(i)]);
    rig.allocator.audit();
  }
  CHECK(rig.allocator.cacheInfo().largest_free_block == 2 * kMiB);
  CHECK(rig.allocator.cacheInfo().free_bytes == 2 * kMiB);
}

TEST_CASE("the largest free block is told to the byte", "[engine]") {
  SimRig rig;
  std::vector<void*> kept;
  for (std::size_t bytes : {100 * kMiB, 100 * kMiB + 512 * kKiB, 100 * kMiB + 256 * kKiB}) {
    rig.allocator.free(rig.allocator.allocate(bytes + kMiB));
    kept.push_back(rig.allocator.allocate(bytes + kMiB));
  }
  for (void* block : kept) rig.allocator.free(block);
  const CacheInfo cache = rig.allocator.cacheInfo();
  CHECK(cache.free_bytes == std::uint64_t(reservedOf(rig.allocator)));
  // Three segments, or pages that have grown together.
  CHECK(cache.largest_free_block == (onPages(rig.allocator) ? cache.free_bytes : 102 * kMiB));
}

}  // namespace cistern::test
