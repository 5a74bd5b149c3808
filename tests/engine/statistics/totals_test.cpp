// How the statistics are counted, by one thread: to the byte, at any moment, peaks included.
#include "allocator/engine/statistics/totals.hpp"

#include <algorithm>
#include <random>

#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

/// What the statistics should say, of small, large, and both.
struct CountedByHand {
  void change(SizeKind kind, std::int64_t bytes) {
    for (const std::size_t i : {std::size_t(kind), std::size_t{2}}) {
      now[i] += bytes;
      peak[i] = std::max(peak[i], now[i]);
      taken[i] += std::max<std::int64_t>(bytes, 0);
    }
  }
  void check(const MemoryStats& reading) const {
    const MemoryStats::Values* const all[] = {&reading.small_pool, &reading.large_pool,
                                              &reading.all};
    for (std::size_t i = 0; i < 3; ++i) {
      const StatValue value = (*all[i])[std::size_t(Stat::kAllocatedBytes)];
      CHECK(value.current == now[i]);
      CHECK(value.peak == peak[i]);
      CHECK(value.allocated == taken[i]);
      CHECK(value.freed == taken[i] - now[i]);
    }
    CHECK(reading.peaks_exact);
  }

  std::int64_t now[3]{}, peak[3]{}, taken[3]{};
};

/// As a thread's cache counts: in the thread's counters, and published when that is due.
void countHit(Totals& totals, SizeKind kind, std::uint64_t bytes, bool taken) {
  ThreadCounters& own = *totals.join();
  REQUIRE(own.biased_lock.tryLock());
  ThreadCounters::Kind& counts = own.of(kind);
  const auto take = [&] {
    return counts.take(
        bytes, bytes,
        [&](std::uint64_t rest, std::uint64_t rest_requested) {
          counts.useUp(rest, rest_requested);
          return true;
        },
        [] { return false; });
  };
  const bool far = taken ? take() : counts.give(bytes, bytes);
  own.biased_lock.unlock();
  if (far) totals.publish(own);
}

}  // namespace

TEST_CASE("one thread's counts and peaks are exact, however often they are read",
          "[engine][part]") {
  for (const unsigned seldom : {1u, 7u, 5'000u}) {
    std::mt19937 random(seldom);
    Totals totals;
    CountedByHand expected;
    std::vector<std::pair<SizeKind, std::uint64_t>> held;
    for (unsigned step = 1; step <= 5'000; ++step) {
      const bool take = held.empty() || random() % 100 < (step / 500 % 2 ? 40 : 60);
      if (take) {
        held.emplace_back(random() % 3 ? SizeKind::kSmall : SizeKind::kLarge,
                          512 * (1 + random() % 4'000));
      } else {
        std::swap(held[random() % held.size()], held.back());
      }
      const auto [kind, bytes] = held.back();
      if (!take) held.pop_back();
      if (random() % 2) {
        countHit(totals, kind, bytes, take);
      } else {
        take ? totals.countBlock(kind, bytes, bytes, +1)
             : totals.countBlock(kind, bytes, bytes, -1);
      }
      expected.change(kind, take ? std::int64_t(bytes) : -std::int64_t(bytes));
      if (step % seldom == 0) expected.check(totals.read());
    }
  }
}

TEST_CASE("a block that waits for queued work is active and not allocated", "[engine][part]") {
  Totals totals;
  const auto value = [&](Stat stat) { return totals.read().all[std::size_t(stat)]; };
  totals.countBlock(SizeKind::kLarge, 4096, 4000, +1);
  totals.countPending(SizeKind::kLarge, 4096, +1, false);
  totals.countBlock(SizeKind::kLarge, 4096, 4000, -1);
  CHECK(value(Stat::kAllocation).current == 0);
  CHECK(value(Stat::kActive).current == 1);
  CHECK(value(Stat::kActiveBytes).current == 4096);
  CHECK(value(Stat::kActive).allocated == 1);
  totals.countPending(SizeKind::kLarge, 4096, -1, false);
  CHECK(value(Stat::kActive).current == 0);
  CHECK(value(Stat::kActive).freed == 1);
  totals.countPending(SizeKind::kLarge, 4096, +1, true);  // free memory that is set aside
  CHECK(value(Stat::kActive).current == 1);
  CHECK(value(Stat::kActive).allocated == 2);
  CHECK(value(Stat::kAllocation).allocated == 1);
}

TEST_CASE("memory that comes, goes, is refused or changes its kind is counted exactly",
          "[engine][part]") {
  Totals totals;
  const auto reserved = [&] {
    const MemoryStats now = totals.read();
    const auto of = [](const MemoryStats::Values& v) {
      return v[std::size_t(Stat::kReservedBytes)].current;
    };
    CHECK(of(now.all) == of(now.small_pool) + of(now.large_pool));
    return std::pair(of(now.small_pool), of(now.large_pool));
  };
  const auto all = [&](Stat stat) { return totals.read().all[std::size_t(stat)]; };
  totals.countBacking(SizeKind::kLarge, 20 * kMiB, +1, true);
  totals.countBacking(SizeKind::kSmall, 2 * kMiB, +1, true);
  CHECK(reserved() == std::pair(mib(2), mib(20)));
  totals.moveBacking(SizeKind::kSmall, SizeKind::kLarge, 2 * kMiB);
  CHECK(reserved() == std::pair(mib(0), mib(22)));
  CHECK(all(Stat::kReservedBytes).allocated == mib(22));
  totals.countBacking(SizeKind::kLarge, 20 * kMiB, -1, false);
  totals.countBacking(SizeKind::kLarge, 20 * kMiB, +1, false);
  CHECK(reserved() == std::pair(mib(0), mib(22)));
  CHECK(all(Stat::kSegment).current == 2);
  CHECK(all(Stat::kReservedBytes).peak == mib(22));
  CHECK(all(Stat::kReservedBytes).freed == 0);
}

TEST_CASE("peaks and what has accumulated begin anew from what there is", "[engine][part]") {
  Totals totals;
  const auto value = [&] { return totals.read().all[std::size_t(Stat::kAllocatedBytes)]; };
  totals.countBlock(SizeKind::kSmall, 4096, 4096, +1);
  totals.countBlock(SizeKind::kSmall, 512, 512, +1);
  totals.countBlock(SizeKind::kSmall, 4096, 4096, -1);
  totals.resetPeaks();
  CHECK(value().peak == 512);
  totals.resetAccumulated();
  CHECK((value().allocated == 0 && value().freed == 0 && value().current == 512));
  totals.countBlock(SizeKind::kSmall, 512, 512, -1);
  totals.countBlock(SizeKind::kSmall, 1024, 1024, +1);
  CHECK((value().allocated == 1024 && value().freed == 512 && value().peak == 1024));
}

}  // namespace cistern::test
