// A snapshot that is taken in slices, while other threads allocate.
#include <atomic>
#include <random>
#include <set>

#include "tests/history/history_support.hpp"
#include "tests/support/slow_build.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

// More than a slice has.
constexpr std::size_t kBlocks = 20'000;

/// Blocks of the segments, which cover them without a gap.
void checkWhole(const Snapshot& snapshot) {
  Address end = 0;
  for (const SnapshotSegment& segment : snapshot.segments) {
    CHECK(segment.address >= end);
    end = segment.address;
    BlockUse before = BlockUse::kAllocated;
    for (const SnapshotBlock& block : segment.blocks) {
      REQUIRE(block.address == end);
      REQUIRE(block.bytes > 0);
      end += block.bytes;
      const bool joins = block.use == BlockUse::kFree && before == BlockUse::kFree;
      REQUIRE_FALSE(joins);
      before = block.use;
    }
    CHECK(end == segment.address + segment.bytes);
  }
}

std::vector<void*> allocateMany(CachingAllocator& allocator) {
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i)
    blocks.push_back(allocator.allocate(512 * (1 + i % 3), Stream{}));
  return blocks;
}

TEST_CASE("a snapshot of many blocks has each once") {
  SimRig rig;
  std::vector<void*> blocks = allocateMany(rig.allocator);
  for (std::size_t i = 0; i < blocks.size(); i += 5)
    rig.allocator.free(std::exchange(blocks[i], {}));
  const Snapshot snapshot = rig.allocator.snapshot();
  checkWhole(snapshot);
  const Picture picture = pictureOf(snapshot);
  CHECK(picture.living.size() == kBlocks - kBlocks / 5);
  for (void* block : blocks) {
    if (block != nullptr) REQUIRE(picture.living.count(toAddress(block)) == 1);
    rig.allocator.free(block);
  }
}

TEST_CASE("a snapshot amid a storm has every block that stays") {
  constexpr std::size_t kThreads = 4;
  SimRig rig("", simOf(512 * kMiB));
  const std::vector<void*> stay = allocateMany(rig.allocator);
  std::set<Address> staying;
  for (void* block : stay) staying.insert(toAddress(block));
  std::atomic<std::size_t> running{kThreads};
  onThreads(kThreads + 1, [&](std::size_t i) {
    if (i == kThreads) {
      while (running != 0) {
        const Snapshot snapshot = rig.allocator.snapshot();
        checkWhole(snapshot);
        std::size_t seen = 0;
        for (const auto& [address, bytes] : pictureOf(snapshot).living)
          seen += staying.count(address);
        REQUIRE(seen == staying.size());
      }
      return;
    }
    std::mt19937 random{unsigned(i)};
    std::vector<void*> held(64);
    for (int step = 0; step < (kSlowBuild ? 20'000 : 200'000); ++step) {
      void*& block = held[random() % held.size()];
      rig.allocator.free(block);
      block =
          rig.allocator.allocate(1 + random() % (step % 50 == 0 ? 3 * kMiB : 8 * kKiB), Stream{});
    }
    for (void* block : held) rig.allocator.free(block);
    --running;
  });
  for (void* block : stay) rig.allocator.free(block);
}

}  // namespace
}  // namespace cistern::test
