// The statistics with caches, set against those of the same program without; and what a cached pair
// costs beside time.
#include <random>
#include <string>

#include "tests/engine/cache/thread_cache_support.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

constexpr Stat kOfRequests[] = {Stat::kAllocation, Stat::kActive, Stat::kAllocatedBytes,
                                Stat::kActiveBytes, Stat::kRequestedBytes};

/// A program that anyone can run again: by its seed it asks for the same at every run.
class Program {
 public:
  Program(const std::string& conf, std::size_t streams, unsigned seed)
      : rig_("background_thread:false," + conf, roomySim()), random_(seed) {
    streams_.emplace_back();
    while (streams_.size() < streams) streams_.push_back(rig_.stream());
  }
  ~Program() {
    for (void* block : held_) rig_.allocator.free(block);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void step() {
    const unsigned growing = random_() % 4'000 < 2'000 ? 55 : 45;
    if (held_.empty() || random_() % 100 < growing) {
      held_.push_back(rig_.allocator.allocate(size(), streams_[random_() % streams_.size()]));
      return;
    }
    std::swap(held_[random_() % held_.size()], held_.back());
    rig_.allocator.free(held_.back());
    held_.pop_back();
  }
  MemoryStats stats() { return rig_.allocator.memoryStats(); }
  void resetPeaks() { rig_.allocator.resetPeakStats(); }

 private:
  // Odd numbers of bytes: what is asked for differs in each, what is given seldom.
  std::size_t size() {
    switch (random_() % 8) {
      case 0:
        return 1 + random_() % (3 * kMiB);
      case 1:
        return 1 + random_() % (300 * kKiB);
      case 2:
        return 512 * (1 + random_() % 4) - random_() % 2;
      default:
        return 1 + random_() % (20 * kKiB);
    }
  }
  SimRig rig_;
  std::mt19937 random_;
  std::vector<Stream> streams_;
  std::vector<void*> held_;
};

void compare(const MemoryStats& cached, const MemoryStats& plain) {
  REQUIRE(cached.peaks_exact);
  const MemoryStats::Values* kinds[][2] = {{&cached.all, &plain.all},
                                           {&cached.small_pool, &plain.small_pool},
                                           {&cached.large_pool, &plain.large_pool}};
  for (const auto& [with, without] : kinds) {
    for (const Stat stat : kOfRequests) {
      INFO(statName(stat));
      const StatValue &a = (*with)[std::size_t(stat)], &b = (*without)[std::size_t(stat)];
      REQUIRE(a.current == b.current);
      REQUIRE(a.peak == b.peak);
      REQUIRE(a.allocated == b.allocated);
      REQUIRE(a.freed == b.freed);
    }
  }
}

/// `asked_every`: how many steps pass between two looks, which take what is cached back.
void compareThroughout(std::size_t streams, unsigned seed, int asked_every) {
  Program cached("thread_cache:2M", streams, seed), plain("thread_cache:off", streams, seed);
  for (int i = 1; i <= 20'000; ++i) {
    cached.step();
    plain.step();
    if (i % asked_every == 0) compare(cached.stats(), plain.stats());
    if (i % 7'001 == 0) {
      cached.resetPeaks();
      plain.resetPeaks();
    }
  }
  compare(cached.stats(), plain.stats());
}

}  // namespace

TEST_CASE("statistics and peaks are those of a program without caches", "[engine]") {
  compareThroughout(1, 1, 20'000);
  compareThroughout(1, 2, 1'000);
  compareThroughout(1, 3, 37);
}

TEST_CASE("statistics and peaks over several streams are those of a program without caches",
          "[engine]") {
  compareThroughout(4, 4, 20'000);
  compareThroughout(4, 5, 500);
}

TEST_CASE("many threads leave exact totals", "[engine]") {
  SimRig rig("", roomySim());
  onThreads(6, [&](std::size_t i) {
    const Stream stream = rig.stream();
    for (std::size_t round = 0; round < 2'000; ++round) {
      rig.allocator.free(rig.allocator.allocate(1 + 700 * ((round + i) % 9), stream));
    }
  });
  std::int64_t requested = 0;
  for (std::size_t i = 0; i < 6; ++i) {
    for (std::size_t round = 0; round < 2'000; ++round) {
      requested += std::int64_t(1 + 700 * ((round + i) % 9));
    }
  }
  const MemoryStats stats = rig.allocator.memoryStats();
  CHECK(stats[Stat::kAllocation].allocated == 12'000);
  CHECK(stats[Stat::kAllocation].freed == 12'000);
  CHECK(stats[Stat::kRequestedBytes].allocated == requested);
  CHECK(stats[Stat::kRequestedBytes].freed == requested);
  CHECK(stats[Stat::kAllocation].peak >= 1);
  CHECK(stats[Stat::kAllocation].peak <= 6);
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)
TEST_CASE("a cached pair makes no device call and allocates nothing on the host", "[engine]") {
  for (std::size_t bytes : {std::size_t{1}, std::size_t{512}, 64 * kKiB, 200 * kKiB, 2 * kMiB}) {
    INFO(bytes);
    SimRig rig("background_thread:false", roomySim());
    const Stream stream = rig.stream();
    for (int i = 0; i < 3; ++i) rig.allocator.free(rig.allocator.allocate(bytes, stream));
    const CallCounts calls = rig.sim().callCounts();
    const std::uint64_t allocations = hostAllocations();
    for (int i = 0; i < 1'000; ++i) rig.allocator.free(rig.allocator.allocate(bytes, stream));
    CHECK(hostAllocations() == allocations);
    CHECK(rig.sim().callCounts() == calls);
  }
}
#endif

}  // namespace cistern::test
