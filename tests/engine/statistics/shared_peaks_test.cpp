// What is promised of statistics while several threads allocate (statistics/totals.hpp): counts as
// exact as ever, and so are the peaks of what no hit changes; that of bytes never too high, others
// by no more than what caches keep; and none lower than by a step for each thread.
#include <algorithm>
#include <random>
#include <string>

#include "allocator/engine/statistics/totals.hpp"
#include "tests/engine/cache/thread_cache_support.hpp"

namespace cistern::test {
namespace {

struct HeldBlocks {
  void* block;
  std::int64_t bytes;
};

/// Some threads that take turns, each on a stream of its own, and what the test itself knows of
/// their bytes. `largest`: of small blocks, in bytes.
class Turns {
 public:
  Turns(const std::string& conf, std::size_t threads, std::size_t largest, unsigned seed)
      : rig_("background_thread:false," + conf, roomySim()), random_(seed), largest_(largest) {
    while (streams_.size() < threads) streams_.push_back(rig_.stream());
    while (threads_.size() + 1 < threads) threads_.push_back(std::make_unique<IdleThread>());
  }
  ~Turns() {
    for (const HeldBlocks& held : held_) rig_.allocator.free(held.block);
  }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  void step() {
    const unsigned growing = random_() % 2'000 < 1'000 ? 60 : 45;
    if (held_.empty() || random_() % 100 < growing) return take();
    std::swap(held_[random_() % held_.size()], held_.back());
    const HeldBlocks last = held_.back();
    held_.pop_back();
    give(last.block, random_() % streams_.size());  // often not by the thread that took it
    current_ -= last.bytes;
  }
  /// Compares counts, and peaks with those since the last resetPeaks().
  void look(std::int64_t low_by) {
    const MemoryStats stats = rig_.allocator.memoryStats();
    const StatValue& bytes = stats[Stat::kAllocatedBytes];
    REQUIRE(bytes.current == current_);
    REQUIRE(bytes.allocated == allocated_);
    REQUIRE(bytes.freed == allocated_ - current_);
    REQUIRE(bytes.peak <= peak_);
    REQUIRE(bytes.peak >= peak_ - low_by);
    REQUIRE(stats.peaks_exact == (streams_.size() == 1));
    REQUIRE(stats[Stat::kAllocation].current == std::int64_t(held_.size()));
    REQUIRE(stats[Stat::kReservedBytes].current == std::int64_t(takenOf(rig_.sim())));
  }
  void resetPeaks() {
    rig_.allocator.resetPeakStats();
    peak_ = current_;
  }
  /// What is promised whatever the sizes: a part of the device for each thread, or of the peak.
  std::int64_t lowBy() const {
    if (streams_.size() == 1) return 0;
    const auto of_device = std::int64_t(roomySim().capacity / 8192 * streams_.size());
    return std::max(of_device, peak_ / 128);
  }

 private:
  void take() {
    const std::size_t who = random_() % streams_.size();
    const std::size_t bytes = 512 * (1 + random_() % (largest_ / 512));
    void* block = who == 0 ? rig_.allocator.allocate(bytes, streams_[0])
                           : threads_[who - 1]->allocate(rig_.allocator, bytes, streams_[who]);
    const auto got =
        std::int64_t(rig_.allocator.blockSize(block));  // what is left may be too little
    held_.push_back({block, got});
    current_ += got;
    allocated_ += got;
    peak_ = std::max(peak_, current_);
  }
  void give(void* block, std::size_t who) {
    who == 0 ? rig_.allocator.free(block) : threads_[who - 1]->free(rig_.allocator, block);
  }

  SimRig rig_;
  std::mt19937 random_;
  const std::size_t largest_;
  std::vector<Stream> streams_;
  std::vector<std::unique_ptr<IdleThread>> threads_;
  std::vector<HeldBlocks> held_;
  std::int64_t current_ = 0, allocated_ = 0, peak_ = 0;
};

}  // namespace

TEST_CASE("with several threads counts stay exact, and peaks are low by little", "[engine]") {
  const auto threads = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{5});
  for (const char* conf : {"thread_cache:2M", "thread_cache:off", "backing:segments"}) {
    INFO(conf << ", " << threads << " threads");
    // Few blocks are a step here, so that a step is what is promised at least.
    Turns small(conf, threads, 2 * kKiB, 1);
    for (int i = 1; i <= 6'000; ++i) {
      small.step();
      if (i % 100 == 0) small.look(threads == 1 ? 0 : std::int64_t(threads * 64 * kKiB));
      if (i % 1'999 == 0) small.resetPeaks();
    }
    for (const std::size_t largest : {256 * kKiB, 16 * kMiB}) {
      Turns large(conf, threads, largest, 2);
      for (int i = 1; i <= 4'000; ++i) {
        large.step();
        if (i % 100 == 0) large.look(large.lowBy());
        if (i % 1'999 == 0) large.resetPeaks();
      }
    }
  }
}

// As many bytes, but fewer blocks: which a free that is a hit does not look at.
TEST_CASE("small blocks that go for large ones count twice at most, and their bytes once",
          "[engine]") {
  SimRig rig("background_thread:false", roomySim());
  IdleThread other;
  const Stream own = rig.stream(), others = rig.stream();
  other.free(rig.allocator, other.allocate(rig.allocator, 512, others));
  constexpr std::size_t kLarge = 50, kSmallForOne = 32, kOthers = 3'000;
  std::vector<void*> large, small;
  while (small.size() < kLarge * kSmallForOne + 20)
    small.push_back(rig.allocator.allocate(512, own));
  while (large.size() < 2 * kLarge) large.push_back(rig.allocator.allocate(16 * kKiB, own));
  for (void* block : large) rig.allocator.free(block);
  large.resize(kLarge);  // the thread's cache has more of them
  rig.allocator.resetPeakStats();
  for (void*& block : large) {
    block = rig.allocator.allocate(16 * kKiB, own);
    for (std::size_t i = 0; i < kSmallForOne; ++i) {
      rig.allocator.free(small.back());
      small.pop_back();
    }
  }
  std::vector<void*> of_other;
  while (of_other.size() < kOthers) of_other.push_back(other.allocate(rig.allocator, 512, others));
  const MemoryStats stats = rig.allocator.memoryStats();
  CHECK(stats[Stat::kAllocation].current == std::int64_t(kLarge + kOthers + 20));
  const auto kept = std::int64_t(kLarge * kSmallForOne);
  CHECK(stats[Stat::kAllocation].peak <= stats[Stat::kAllocation].current + kept);
  CHECK(stats[Stat::kAllocatedBytes].peak <= stats[Stat::kAllocatedBytes].current);
  for (void* block : small) rig.allocator.free(block);
  for (void* block : large) rig.allocator.free(block);
  for (void* block : of_other) other.free(rig.allocator, block);
}

TEST_CASE("peaks are exact again when the others have ended", "[engine]") {
  SimRig rig("background_thread:false", roomySim());
  const auto stats = [&] { return rig.allocator.memoryStats(); };
  {
    IdleThread other;
    other.free(rig.allocator, other.allocate(rig.allocator, kMiB, rig.stream()));
    rig.allocator.free(rig.allocator.allocate(kMiB));
    CHECK_FALSE(stats().peaks_exact);
    rig.allocator.resetPeakStats();
    CHECK_FALSE(stats().peaks_exact);  // two that may allocate are two that do
  }
  CHECK_FALSE(stats().peaks_exact);
  rig.allocator.resetPeakStats();
  CHECK(stats().peaks_exact);
  rig.allocator.free(rig.allocator.allocate(3 * kKiB));
  CHECK(stats()[Stat::kRequestedBytes].peak == 3 * kKiB);
}

TEST_CASE("a thread that only frees leaves peaks exact", "[engine]") {
  SimRig rig("background_thread:false", roomySim());
  IdleThread other;
  for (const std::size_t bytes : {std::size_t{512}, 100 * kKiB, 3 * kMiB}) {
    INFO(bytes);
    rig.allocator.resetPeakStats();
    for (int round = 0; round < 20; ++round) {
      void* first = rig.allocator.allocate(bytes);
      void* second = rig.allocator.allocate(bytes);
      other.free(rig.allocator, first);
      other.free(rig.allocator, second);
    }
    const MemoryStats stats = rig.allocator.memoryStats();
    CHECK(stats.peaks_exact);
    CHECK(stats[Stat::kAllocation].peak == 2);
    CHECK(stats[Stat::kRequestedBytes].peak == std::int64_t(2 * bytes));
    CHECK(stats[Stat::kActive].peak == 2);
  }
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)
// So it is too where the system has no biased locks.
TEST_CASE("peaks are exact where no thread has counters of its own", "[engine]") {
  Totals totals;
  {
    const AtHostAllocations at([] { throw std::bad_alloc(); });
    for (int i = 0; i < 3; ++i) totals.countBlock(SizeKind::kSmall, kKiB, 1'000, +1);
    for (int i = 0; i < 3; ++i) totals.countBlock(SizeKind::kSmall, kKiB, 1'000, -1);
  }
  const MemoryStats read = totals.read();
  CHECK(read.all[std::size_t(Stat::kAllocation)].peak == 3);
  CHECK(read.all[std::size_t(Stat::kAllocatedBytes)].peak == 3 * std::int64_t(kKiB));
  CHECK(read.all[std::size_t(Stat::kRequestedBytes)].peak == 3'000);
  CHECK(read.all[std::size_t(Stat::kAllocation)].current == 0);
}
#endif

TEST_CASE("reading while threads allocate sees what there is", "[engine][threads]") {
  SimRig rig("", roomySim());
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&rig, &stop, stream = rig.stream()] {
      std::vector<void*> held;
      for (std::size_t round = 0; !stop; ++round) {
        held.push_back(rig.allocator.allocate(1 + (round * 7'919) % (200 * kKiB), stream));
        if (held.size() < 8) continue;
        for (void* block : held) rig.allocator.free(block);
        held.clear();
      }
      for (void* block : held) rig.allocator.free(block);
    });
  }
  for (int i = 0; i < 300; ++i) {
    const MemoryStats stats = rig.allocator.memoryStats();
    for (std::size_t stat = 0; stat < kStatCount; ++stat) {
      const StatValue& all = stats.all[stat];
      CHECK((all.current >= 0 && all.peak >= all.current && all.freed >= 0));
      CHECK(all.current == stats.small_pool[stat].current + stats.large_pool[stat].current);
    }
    CHECK(stats[Stat::kAllocation].current <= 24);
    CHECK(stats[Stat::kAllocation].peak <= 24);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(rig.allocator.memoryStats()[Stat::kAllocation].current == 0);
}

}  // namespace cistern::test
