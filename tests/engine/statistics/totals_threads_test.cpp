// How the statistics are counted by several threads: counts exact, peaks low by little and never
// too high.
#include <algorithm>
#include <cstdlib>
#include <random>

#include "allocator/engine/statistics/totals.hpp"
#include "tests/engine/cache/thread_cache_support.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

StatValue allocatedBytes(Totals& totals) {
  return totals.read().all[std::size_t(Stat::kAllocatedBytes)];
}

}  // namespace

TEST_CASE("the peak of several threads is too low by a step each at most, and never too high",
          "[engine][part][threads]") {
  constexpr std::int64_t kStep = 64 * std::int64_t(kKiB), kBlock = 512;
  std::mt19937 random(5);
  Totals totals;
  IdleThread threads[3];
  std::int64_t held[3] = {}, now = 0, peak = 0;
  for (int step = 1; step <= 2'000; ++step) {
    const std::size_t who = random() % 3;
    const bool takes = held[who] == 0 || now < 300 * kBlock || random() % 2;
    const auto count = std::int64_t(1 + random() % 20);
    const std::int64_t blocks = takes ? count : -std::min(held[who], count);
    threads[who].run([&] {
      for (std::int64_t i = 0; i < std::abs(blocks); ++i) {
        takes ? totals.countBlock(SizeKind::kSmall, kBlock, kBlock, +1)
              : totals.countBlock(SizeKind::kSmall, kBlock, kBlock, -1);
      }
    });
    held[who] += blocks;
    now += blocks * kBlock;
    peak = std::max(peak, now);
    if (step % 50 != 0) continue;
    const StatValue value = allocatedBytes(totals);
    CHECK(value.current == now);
    CHECK(value.peak <= peak);
    CHECK(value.peak >= peak - 3 * kStep);
    if (step % 200 != 0) continue;
    totals.resetPeaks();
    peak = now;
  }
  CHECK_FALSE(totals.read().peaks_exact);
}

TEST_CASE("what one thread has given back unseen is in no peak that another reaches",
          "[engine][part][threads]") {
  Totals totals;
  IdleThread first, second;
  const auto count = [&](IdleThread& thread, int blocks) {
    thread.run([&] {
      for (int i = 0; i < std::abs(blocks); ++i) {
        blocks > 0 ? totals.countBlock(SizeKind::kSmall, 512, 512, +1)
                   : totals.countBlock(SizeKind::kSmall, 512, 512, -1);
      }
    });
  };
  count(first, 100);
  count(second, 1);
  CHECK(allocatedBytes(totals).current == 101 * 512);
  count(first, -20);   // too few to be published
  count(second, 100);  // enough
  CHECK(allocatedBytes(totals).peak <= 181 * 512);
  CHECK(allocatedBytes(totals).current == 181 * 512);
}

TEST_CASE("what a thread has counted stays when it ends, and the last one's peaks are exact",
          "[engine][part][threads]") {
  Totals totals;
  totals.countBlock(SizeKind::kSmall, 1024, 1024, +1);
  {
    IdleThread other;
    other.run([&] { totals.countBlock(SizeKind::kLarge, 1 << 22, 1 << 22, +1); });
    CHECK(allocatedBytes(totals).current == (1 << 22) + 1024);
  }
  CHECK(allocatedBytes(totals).current == (1 << 22) + 1024);
  totals.resetPeaks();
  totals.countBlock(SizeKind::kLarge, 1 << 22, 1 << 22, -1);
  totals.countBlock(SizeKind::kSmall, 512, 512, +1);
  CHECK(allocatedBytes(totals).peak == (1 << 22) + 1024);
  CHECK(allocatedBytes(totals).current == 1536);
  CHECK(totals.read().peaks_exact);
}

TEST_CASE("a thread that only frees publishes at once and leaves peaks exact",
          "[engine][part][threads]") {
  Totals totals;
  for (int i = 0; i < 4; ++i) totals.countBlock(SizeKind::kSmall, 512, 512, +1);
  IdleThread other;
  other.run([&] {
    for (int i = 0; i < 3; ++i) totals.countBlock(SizeKind::kSmall, 512, 512, -1);
    CHECK(totals.mine() == nullptr);
  });
  totals.countBlock(SizeKind::kSmall, 1024, 1024, +1);
  CHECK(allocatedBytes(totals).current == 1536);
  CHECK(allocatedBytes(totals).peak == 2048);
  CHECK(totals.read().peaks_exact);
}

TEST_CASE("totals are exact when threads that count at once are done", "[engine][part][threads]") {
  constexpr int kRounds = 3'000;
  Totals totals;
  onThreads(3, [&](std::size_t thread) {
    for (int i = 0; i < kRounds; ++i) {
      const std::uint64_t bytes = 512 * (1 + std::uint64_t(i) % 7);
      totals.countBlock(SizeKind::kSmall, bytes, bytes, +1);
      if (i % 3) totals.countBlock(SizeKind::kSmall, bytes, bytes, -1);
      if (thread == 0 && i % 64 == 0) (void)totals.read();
    }
  });
  std::int64_t each = 0, taken = 0;
  for (int i = 0; i < kRounds; ++i) {
    taken += 512 * (1 + i % 7);
    if (i % 3 == 0) each += 512 * (1 + i % 7);
  }
  CHECK(allocatedBytes(totals).current == 3 * each);
  CHECK(allocatedBytes(totals).allocated == 3 * taken);
  CHECK(totals.read().all[std::size_t(Stat::kAllocation)].current == kRounds);
}

TEST_CASE("each allocator's counters are its own", "[engine][part]") {
  Totals first, second;
  first.countBlock(SizeKind::kSmall, 512, 512, +1);
  CHECK(first.join() != second.join());
  CHECK(first.join() == first.mine());
  CHECK(allocatedBytes(second).current == 0);
  CHECK(allocatedBytes(first).current == 512);
}

}  // namespace cistern::test
