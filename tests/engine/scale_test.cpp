// Many live blocks, many streams, many segments.
#include <cmath>
#include <random>

#include "tests/engine/engine_support.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {

TEST_CASE("a million live blocks cost at most 128 bytes of host memory each", "[engine][long]") {
  const std::size_t count = kSlowBuild ? 50'000 : 1'000'000;
  SimRig rig("", simOf(2 * kTiB));
  std::vector<void*> blocks;
  blocks.reserve(count);
  for (std::size_t i = 0; i < count; ++i) blocks.push_back(rig.allocator.allocate(1 + i % 2048));
  const MemoryStats stats = rig.allocator.memoryStats();
  CHECK(stats[Stat::kAllocation].current == std::int64_t(count));
  CHECK(stats.host_bytes <= count * 128);
  for (std::size_t i = 0; i < count; ++i) rig.allocator.free(blocks[i * 7'919 % count]);
  CHECK(nowOf(rig.allocator, Stat::kAllocation) == 0);
  CHECK(rig.allocator.cacheInfo().free_bytes == std::uint64_t(reservedOf(rig.allocator)));
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

// By then free blocks lie between those in use, and tables were outgrown.
TEST_CASE(
    "a hundred thousand blocks that replaced others cost at most 128 bytes of host memory each",
    "[engine][long]") {
  const std::size_t count = kSlowBuild ? 20'000 : 100'000;
  const std::size_t most = kSlowBuild ? 160 : 128;  // of fewer, what there is once weighs more
  SimRig rig("", simOf(2 * kTiB));
  std::mt19937_64 random(1);
  std::uniform_real_distribution<> log_size(9, 20);
  const auto get = [&] { return rig.allocator.allocate(std::size_t(std::exp2(log_size(random)))); };
  std::vector<void*> blocks;
  while (blocks.size() < count) blocks.push_back(get());
  for (std::size_t i = 0; i < count; ++i) {
    void*& block = blocks[random() % count];
    rig.allocator.free(block);
    block = get();
  }
  CHECK(rig.allocator.memoryStats().host_bytes <= count * most);
  for (void* block : blocks) rig.allocator.free(block);
}

TEST_CASE("a thousand streams have a heap each, and their memory comes back", "[engine]") {
  SimRig rig("", simOf(64 * kGiB));
  std::vector<std::pair<Stream, void*>> blocks;
  constexpr std::int64_t kStreams = kSlowBuild ? 250 : 1'000;
  for (std::int64_t i = 0; i < kStreams; ++i) {
    const Stream stream = rig.stream();
    blocks.emplace_back(stream, rig.allocator.allocate(kMiB, stream));
  }
  CHECK(reservedOf(rig.allocator) == mib(2 * kStreams));
  for (const auto& [stream, block] : blocks) rig.allocator.free(block);
  for (const auto& [stream, block] : blocks) CHECK(rig.allocator.allocate(kMiB, stream) == block);
  for (const auto& [stream, block] : blocks) rig.allocator.free(block);
  rig.allocator.emptyCache();
  CHECK(takenOf(rig.sim()) == 0);
}

TEST_CASE("segments come and go by the thousand", "[engine][long]") {
  SimRig rig("", simOf(512 * kGiB));
  for (int round = 0; round < 3; ++round) {
    std::vector<void*> blocks;
    for (int i = 0; i < 1'000; ++i) {
      blocks.push_back(rig.allocator.allocate((20 + std::size_t(i % 50)) * kMiB));
    }
    for (void* block : blocks) rig.allocator.free(block);
    rig.allocator.emptyCache();
    CHECK(takenOf(rig.sim()) == 0);
  }
}

}  // namespace cistern::test
