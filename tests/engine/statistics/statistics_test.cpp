// The statistics, against a count that the test keeps by itself.
#include <algorithm>
#include <map>
#include <random>

#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

/// What the test itself knows about the statistics that follow from its own calls.
class Ledger {
 public:
  void allocated(void* block, std::size_t requested, std::size_t size) {
    blocks_[block] = {requested, size};
    add(requested, size, 1);
  }
  void freed(void* block) {
    const auto [requested, size] = blocks_.at(block);
    blocks_.erase(block);
    add(requested, size, -1);
  }
  void resetPeaks() {
    for (auto& kind : values_) {
      for (StatValue& value : kind) value.peak = value.current;
    }
  }
  void resetAccumulated() {
    for (auto& kind : values_) {
      for (StatValue& value : kind) value.allocated = value.freed = 0;
    }
  }
  void compare(const MemoryStats& stats) const {
    const MemoryStats::Values* found[] = {&stats.small_pool, &stats.large_pool, &stats.all};
    for (std::size_t kind = 0; kind < 3; ++kind) {
      for (Stat stat : {Stat::kAllocation, Stat::kAllocatedBytes, Stat::kRequestedBytes}) {
        INFO(statName(stat) << " of kind " << kind);
        const StatValue& own = values_[kind][std::size_t(stat)];
        const StatValue& theirs = (*found[kind])[std::size_t(stat)];
        REQUIRE(theirs.current == own.current);
        REQUIRE(theirs.peak == own.peak);
        REQUIRE(theirs.allocated == own.allocated);
        REQUIRE(theirs.freed == own.freed);
      }
    }
  }

 private:
  struct Size {
    std::size_t requested, size;
  };
  void add(std::size_t requested, std::size_t size, std::int64_t sign) {
    for (std::size_t kind : {std::size_t(size > kMiB), std::size_t(2)}) {
      count(values_[kind][std::size_t(Stat::kAllocation)], sign);
      count(values_[kind][std::size_t(Stat::kAllocatedBytes)], sign * std::int64_t(size));
      count(values_[kind][std::size_t(Stat::kRequestedBytes)], sign * std::int64_t(requested));
    }
  }
  static void count(StatValue& value, std::int64_t by) {
    value.current += by;
    (by > 0 ? value.allocated : value.freed) += std::abs(by);
    value.peak = std::max(value.peak, value.current);
  }

  std::map<void*, Size> blocks_;
  std::array<MemoryStats::Values, 3> values_{};
};

// What holds for any statistics that nobody has reset.
void checkSums(const MemoryStats& stats) {
  for (std::size_t s = 0; s < kStatCount; ++s) {
    INFO(statName(Stat(s)));
    REQUIRE(stats.all[s].current == stats.small_pool[s].current + stats.large_pool[s].current);
    REQUIRE(stats.all[s].allocated ==
            stats.small_pool[s].allocated + stats.large_pool[s].allocated);
    REQUIRE(stats.all[s].allocated - stats.all[s].freed == stats.all[s].current);
    REQUIRE(stats.all[s].peak >= stats.all[s].current);
    REQUIRE(stats.all[s].peak <= stats.small_pool[s].peak + stats.large_pool[s].peak);
    REQUIRE(stats.all[s].peak >= std::max(stats.small_pool[s].peak, stats.large_pool[s].peak));
  }
}

// Random operations on a few streams; after each the statistics are compared.
void compareThroughout(std::size_t stream_count, std::uint32_t seed, const char* conf) {
  // Nobody gives pages back between two looks at once.
  SimRig rig(std::string("background_thread:false") + conf, simOf(4 * kGiB, 3'000));
  std::vector<Stream> streams{Stream{}};
  while (streams.size() < stream_count) streams.push_back(rig.stream());
  std::mt19937 random(seed);
  std::vector<void*> held;
  Ledger ledger;
  for (int i = 0; i < 1'500; ++i) {
    if (held.empty() || random() % 100 < (i / 250 % 2 == 0 ? 65u : 35u)) {
      const std::size_t most = random() % 3 == 0 ? 30 * kMiB : 300 * kKiB;
      const std::size_t bytes = 1 + random() % most;
      void* block = rig.allocator.allocate(bytes, streams[random() % streams.size()]);
      held.push_back(block);
      ledger.allocated(block, bytes, rig.allocator.blockSize(block));
    } else {
      std::swap(held[random() % held.size()], held.back());
      if (random() % 4 == 0) {
        rig.allocator.recordStream(held.back(), streams[random() % streams.size()]);
      }
      ledger.freed(held.back());
      rig.allocator.free(held.back());
      held.pop_back();
    }
    if (random() % 100 == 0) rig.allocator.emptyCache();
    // Most of the time nobody asks, so that peaks are kept without anyone looking.
    if (random() % 8 != 0) continue;
    const MemoryStats stats = rig.allocator.memoryStats();
    ledger.compare(stats);
    REQUIRE(std::uint64_t(stats[Stat::kReservedBytes].current) == takenOf(rig.sim()));
  }
  checkSums(rig.allocator.memoryStats());
  rig.allocator.resetPeakStats();
  ledger.resetPeaks();
  ledger.compare(rig.allocator.memoryStats());
  rig.allocator.resetAccumulatedStats();
  ledger.resetAccumulated();
  for (void* block : held) {
    ledger.freed(block);
    rig.allocator.free(block);
  }
  ledger.compare(rig.allocator.memoryStats());
}

}  // namespace

TEST_CASE("statistics are exact at any moment on one stream", "[engine]") {
  compareThroughout(1, 1, "");
}

TEST_CASE("statistics and their peaks are exact over several streams", "[engine]") {
  compareThroughout(6, 2, "");
  compareThroughout(3, 3, ",cross_stream_reuse:false");
}

TEST_CASE("a peak is that of the sum, not the sum of the heaps' peaks", "[engine]") {
  SimRig rig;
  for (int i = 0; i < 5; ++i) {
    const Stream stream = rig.stream();
    rig.allocator.free(rig.allocator.allocate(30 * kMiB, stream));
  }
  CHECK(rig.allocator.memoryStats()[Stat::kAllocatedBytes].peak == mib(30));
  void* a = rig.allocator.allocate(20 * kMiB, rig.stream());
  void* b = rig.allocator.allocate(20 * kMiB, rig.stream());
  CHECK(rig.allocator.memoryStats()[Stat::kAllocatedBytes].peak == mib(40));
  rig.allocator.free(a);
  rig.allocator.free(b);
  rig.allocator.resetPeakStats();
  CHECK(rig.allocator.memoryStats()[Stat::kAllocatedBytes].peak == 0);
}

TEST_CASE("a peak of large segments is seen below that of both", "[engine]") {
  for (const char* cache : {"thread_cache:off", "thread_cache:8M"}) {
    SimRig rig(std::string("backing:segments,background_thread:false,") + cache);
    const auto roundOf = [&](std::size_t count, std::size_t bytes) {
      std::vector<void*> blocks;
      for (std::size_t i = 0; i < count; ++i) blocks.push_back(rig.allocator.allocate(bytes));
      return blocks;
    };
    std::vector<void*> first = roundOf(10, kMiB);
    for (void* block : roundOf(20, 2 * kMiB)) first.push_back(block);
    for (void* block : first) rig.allocator.free(block);
    rig.allocator.emptyCache();
    const MemoryStats before = rig.allocator.memoryStats();
    const std::size_t segment = std::size_t(Stat::kSegment);
    const std::size_t reserved = std::size_t(Stat::kReservedBytes);
    REQUIRE(before.large_pool[segment].peak == 2);
    REQUIRE(before.all[segment].peak == 7);
    for (void* block : roundOf(3, 12 * kMiB)) rig.allocator.free(block);
    rig.allocator.emptyCache();
    const MemoryStats after = rig.allocator.memoryStats();
    CHECK(after.peaks_exact);
    CHECK(after.large_pool[segment].peak == 3);
    CHECK(after.large_pool[reserved].peak ==
          std::max<std::int64_t>(before.large_pool[reserved].peak, 36 << 20));
    CHECK(after.all[segment].peak == 7);
  }
}

TEST_CASE("moving a segment to another stream neither allocates nor frees one", "[engine]") {
  SimRig rig;
  rig.allocator.free(rig.allocator.allocate(30 * kMiB, rig.stream()));
  const MemoryStats before = rig.allocator.memoryStats();
  rig.allocator.free(rig.allocator.allocate(30 * kMiB, rig.stream()));
  const MemoryStats after = rig.allocator.memoryStats();
  for (Stat stat : {Stat::kSegment, Stat::kReservedBytes}) {
    CHECK(after[stat].current == before[stat].current);
    CHECK(after[stat].peak == before[stat].peak);
    CHECK(after[stat].allocated == before[stat].allocated);
    CHECK(after[stat].freed == before[stat].freed);
  }
}

TEST_CASE("inactive splits are the free blocks of segments in use", "[engine]") {
  SimRig rig("thread_cache:off");
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(rig.allocator.allocate(256 * kKiB));
  CHECK(nowOf(rig.allocator, Stat::kInactiveSplit) == 0);
  for (std::size_t i : {1u, 3u, 5u}) rig.allocator.free(blocks[i]);
  CHECK(nowOf(rig.allocator, Stat::kInactiveSplit) == 3);
  CHECK(nowOf(rig.allocator, Stat::kInactiveSplitBytes) == std::int64_t(3 * 256 * kKiB));
  rig.allocator.free(blocks[2]);
  CHECK(nowOf(rig.allocator, Stat::kInactiveSplit) == 2);
  for (std::size_t i : {0u, 4u, 6u, 7u}) rig.allocator.free(blocks[i]);
  const MemoryStats stats = rig.allocator.memoryStats();
  // A segment is wholly free now; a range of pages never is, as long as it has addresses to come.
  CHECK(stats[Stat::kInactiveSplit].current == (onPages(rig.allocator) ? 1 : 0));
  CHECK(stats[Stat::kInactiveSplitBytes].current == (onPages(rig.allocator) ? mib(2) : 0));
  CHECK(stats[Stat::kInactiveSplit].peak == 3);
}

// What is taken off a large free block, and put back, is as much as it is, and not the large one.
TEST_CASE("free memory that is split off is counted by what each step changes", "[engine]") {
  SimRig rig("backing:segments,thread_cache:off");
  const Stream stream = rig.stream();
  const auto splitOff = [&] {
    const MemoryStats stats = rig.allocator.memoryStats();
    return std::pair(stats[Stat::kInactiveSplit], stats[Stat::kInactiveSplitBytes]);
  };
  void* held = rig.allocator.allocate(2 * kMiB, stream);  // of a segment of 20 MiB
  const auto [blocks, bytes] = splitOff();
  CHECK(blocks.allocated == 1);
  CHECK(bytes.allocated == 18 * std::int64_t(kMiB));
  constexpr int kRounds = 10;
  for (int i = 1; i <= kRounds; ++i) {
    void* block = rig.allocator.allocate(2 * kMiB, stream);
    rig.allocator.free(block);
    CHECK(splitOff().second.allocated == bytes.allocated + i * 2 * std::int64_t(kMiB));
    CHECK(splitOff().second.freed == i * 2 * std::int64_t(kMiB));
    CHECK(splitOff().first.allocated == 1);  // it has become one with the rest
  }
  rig.allocator.free(held);
  CHECK(splitOff().second.current == 0);
  CHECK(splitOff().second.allocated - splitOff().second.freed == 0);
}

}  // namespace cistern::test
