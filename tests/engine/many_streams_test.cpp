// Programs with many streams: what they hold is counted and found, and those that are forgotten
// leave nothing behind. What many streams cost is kept by tests/golden.
#include <barrier>
#include <latch>
#include <new>
#include <numeric>
#include <random>
#include <thread>

#include "allocator/engine/core/heap_table.hpp"
#include "tests/engine/cache/thread_cache_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kMany = 40;

struct ManyRig : SimRig {
  ManyRig() : SimRig("background_thread:false", simOf(8 * kGiB)) {
    for (std::size_t i = 0; i < kMany; ++i) streams.push_back(stream());
  }
  StatValue of(Stat stat) { return allocator.memoryStats()[stat]; }

  std::vector<Stream> streams;
};

/// Rounds of a program that makes its streams anew, whose handles never come again.
void churn(SimRig& rig, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const Stream own = rig.stream(), other = rig.stream();
    void* const large = rig.allocator.allocate(3 * kMiB, own);
    void* const small = rig.allocator.allocate(100, own);
    rig.allocator.recordStream(large, other);
    rig.allocator.free(large);
    rig.allocator.free(small);
    for (const Stream stream : {own, other}) {
      rig.allocator.forgetStream(stream);
      rig.sim().destroyStream(stream).orThrow();
    }
  }
}

}  // namespace

TEST_CASE("many streams with one block each take little more than their blocks", "[engine]") {
  SimRig rig("backing:pages,background_thread:false", simOf(256 * kGiB));
  constexpr std::int64_t kStreams = 1'000, kBlock = 3 * kMiB;
  for (std::int64_t i = 0; i < kStreams; ++i) (void)rig.allocator.allocate(kBlock, rig.stream());
  CHECK(reservedOf(rig.allocator) <= kStreams * kBlock * 3 / 2);
}

TEST_CASE("streams that come and go leave nothing behind", "[engine]") {
  const bool reuse = GENERATE(false, true);
  INFO("handles come again: " << reuse);
  sim::SimConfig config = simOf(kGiB);
  config.reuse_streams = reuse;
  SimRig rig("background_thread:false", config);
  churn(rig, 200);
  const MemoryStats before = rig.allocator.memoryStats();
  churn(rig, 400);
  const MemoryStats after = rig.allocator.memoryStats();
  CHECK(after.host_bytes <= before.host_bytes + 20 * kKiB);
  CHECK(after[Stat::kReservedBytes].current <= before[Stat::kReservedBytes].current);
  CHECK(after[Stat::kAllocatedBytes].current == 0);
  CHECK(rig.sim().callsOnDeadStreams() == 0);
}

TEST_CASE("a stream with one allocation costs less than 5.25 KiB of host memory", "[engine]") {
  SimRig rig("", simOf(64 * kGiB));
  const auto host_bytes = [&rig](int streams) {
    for (int i = 0; i < streams; ++i) rig.allocator.free(rig.allocator.allocate(512, rig.stream()));
    return rig.allocator.memoryStats().host_bytes;
  };
  const std::uint64_t before = host_bytes(500);
  CHECK((host_bytes(500) - before) / 500 < 5 * kKiB + kKiB / 4);
}

TEST_CASE("a thread and a stream that meet cost less than 2 KiB, and little once idle",
          "[engine]") {
  SimRig rig("", simOf(64 * kGiB));
  constexpr std::size_t kThreads = 8, kStreams = 100, kPairs = kThreads * kStreams;
  std::vector<Stream> streams;
  for (std::size_t i = 0; i < kStreams; ++i) streams.push_back(rig.stream());
  const auto useAll = [&] {
    for (const Stream stream : streams) rig.allocator.free(rig.allocator.allocate(512, stream));
  };
  const auto hostBytes = [&] { return rig.allocator.memoryStats().host_bytes; };
  useAll();
  const std::uint64_t before = hostBytes();
  std::vector<std::thread> threads;
  std::latch used(kThreads +
                  1);  // all of them at once: one that ends leaves its caches to the next
  std::barrier emptied(kThreads + 1), again(kThreads + 1);
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      useAll();
      used.arrive_and_wait();
      emptied.arrive_and_wait();
      useAll();
      again.arrive_and_wait();
    });
  }
  used.arrive_and_wait();
  CHECK(hostBytes() < before + kPairs * 2 * kKiB);
  rig.allocator.emptyCache();
  CHECK(hostBytes() < before + kPairs * kKiB / 2);
  emptied.arrive_and_wait();
  again.arrive_and_wait();
  CHECK(hostBytes() < before + kPairs * 2 * kKiB);
  for (std::thread& thread : threads) thread.join();
  rig.allocator.emptyCache();
  CHECK(hostBytes() < before + kPairs * kKiB / 2);
}

TEST_CASE("what forgotten streams hold is theirs until it is freed", "[engine]") {
  SimRig rig;
  std::vector<void*> held;
  for (int i = 0; i < 50; ++i) {
    const Stream own = rig.stream();
    held.push_back(rig.allocator.allocate(kMiB, own));
    rig.allocator.forgetStream(own);
    rig.sim().destroyStream(own).orThrow();
  }
  churn(rig, 20);
  CHECK(rig.allocator.memoryStats()[Stat::kAllocatedBytes].current == std::int64_t(50 * kMiB));
  for (void* block : held) rig.allocator.free(block);
  churn(rig, 200);
  rig.allocator.emptyCache();
  CHECK(rig.allocator.memoryStats()[Stat::kReservedBytes].current == 0);
}

TEST_CASE("the heap of a forgotten stream serves another, caches and all", "[engine]") {
  SimRig rig("", simOf(kGiB));
  IdleThread other;
  for (int round = 0; round < 30; ++round) {
    const Stream own = rig.stream();
    void* const block = other.allocate(rig.allocator, 512, own);
    for (int i = 0; i < 3; ++i) {
      rig.allocator.free(rig.allocator.allocate(512, own));
      other.free(rig.allocator, other.allocate(rig.allocator, 512, own));
    }
    rig.allocator.free(block);  // back to the other thread's cache
    CHECK(rig.allocator.memoryStats()[Stat::kAllocation].current == 0);
    rig.allocator.emptyCache();
    rig.allocator.forgetStream(own);
    rig.sim().destroyStream(own).orThrow();
    rig.allocator.audit();
  }
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)
TEST_CASE("a heap that the host has no memory for was never there", "[engine]") {
  constexpr std::uintptr_t kBefore = 40;
  const Options options;
  const SizeRules rules(options);
  bool refused = true;
  for (int nth = 1; refused; ++nth) {
    Totals totals;
    Pool default_pool(true, rules, MemoryKind::kSegments),
        pool(false, rules, MemoryKind::kSegments);
    HeapTable heaps(default_pool, totals);
    for (std::uintptr_t i = 1; i <= kBefore; ++i) (void)heaps.findOrMake(default_pool, Stream{i});
    int requests = 0;
    refused = false;
    try {
      const AtHostAllocations at([&] {
        if (++requests != nth) return;
        refused = true;
        throw std::bad_alloc();
      });
      (void)heaps.findOrMake(pool, Stream{1});
    } catch (const std::bad_alloc&) {
    }
    INFO("request " << nth);
    const std::size_t made = kBefore + (refused ? 0 : 1);
    CHECK(heaps.all().size() == made);
    std::size_t offering = 0;
    HeapTable::Search search{default_pool, HeapTable::From::kAll};
    while (heaps.nextOffering(search) != nullptr) ++offering;
    CHECK(offering == made);
    CHECK((pool.find(Stream{1}) != nullptr) == !refused);
  }
}
#endif

TEST_CASE("what many streams hold is counted, and so is what changes", "[engine]") {
  ManyRig rig;
  const MemoryStats none = rig.allocator.memoryStats();
  std::vector<void*> blocks;
  for (const Stream stream : rig.streams)
    blocks.push_back(rig.allocator.allocate(3 * kKiB, stream));
  const auto held = [&](Stat stat) { return rig.of(stat).current - none[stat].current; };
  CHECK(held(Stat::kAllocation) == std::int64_t(kMany));
  CHECK(held(Stat::kRequestedBytes) == std::int64_t(kMany * 3 * kKiB));
  rig.allocator.resetPeakStats();
  rig.allocator.resetAccumulatedStats();
  CHECK(rig.of(Stat::kAllocation).peak == std::int64_t(kMany));
  CHECK(rig.of(Stat::kAllocation).allocated == 0);
  rig.allocator.free(blocks.back());
  blocks.pop_back();
  CHECK(held(Stat::kAllocation) == std::int64_t(kMany) - 1);
  CHECK(rig.of(Stat::kAllocation).freed == 1);
  blocks.push_back(rig.allocator.allocate(kKiB, rig.streams[3]));  // elsewhere: no new peak
  CHECK(rig.of(Stat::kAllocation).peak == std::int64_t(kMany));
  blocks.push_back(rig.allocator.allocate(kKiB, rig.streams[4]));
  CHECK(rig.of(Stat::kAllocation).peak == std::int64_t(kMany) + 1);
  CHECK(rig.allocator.memoryStats().peaks_exact);
  for (void* block : blocks) rig.allocator.free(block);
  CHECK(held(Stat::kAllocation) == 0);
}

TEST_CASE("a peak that many streams have part in is exact", "[engine]") {
  ManyRig rig;
  std::mt19937 random(7);
  std::vector<std::pair<void*, std::size_t>> blocks;
  std::int64_t held = 0, peak = 0;
  rig.allocator.resetPeakStats();
  for (int step = 0; step < 3'000; ++step) {
    if (!blocks.empty() && random() % 2 == 0) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      rig.allocator.free(blocks.back().first);
      held -= std::int64_t(blocks.back().second);
      blocks.pop_back();
    } else {
      const std::size_t bytes = 1 + random() % (random() % 8 == 0 ? 3 * kMiB : 8 * kKiB);
      // Mostly on a few streams.
      const std::size_t on = random() % 16 == 0 ? random() % kMany : random() % 4;
      blocks.emplace_back(rig.allocator.allocate(bytes, rig.streams[on]), bytes);
      held += std::int64_t(bytes);
      peak = std::max(peak, held);
    }
    if (step % 50 != 0) continue;
    CHECK(rig.of(Stat::kRequestedBytes).current == held);
    CHECK(rig.of(Stat::kRequestedBytes).peak == peak);
    rig.allocator.audit();
  }
  for (const auto& [block, bytes] : blocks) rig.allocator.free(block);
}

TEST_CASE("what another thread gives back to many streams is counted at once", "[engine]") {
  ManyRig rig;
  IdleThread other;
  std::vector<void*> blocks;
  for (const Stream stream : rig.streams) {
    blocks.push_back(other.allocate(rig.allocator, 512, stream));
    blocks.push_back(other.allocate(rig.allocator, 512, stream));  // this one through its cache
  }
  const std::int64_t before = rig.of(Stat::kAllocation).current;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    i % 4 < 2 ? rig.allocator.free(blocks[i]) : other.free(rig.allocator, blocks[i]);
    if (i % 8 == 0) rig.allocator.audit();
    CHECK(rig.of(Stat::kAllocation).current == before - std::int64_t(i) - 1);
  }
  // And their caches serve again.
  const std::uint64_t misses = rig.allocator.misses();
  for (const Stream stream : rig.streams)
    other.free(rig.allocator, other.allocate(rig.allocator, 512, stream));
  CHECK(rig.allocator.misses() == misses);
}

TEST_CASE("memory that lies free on many streams serves others", "[engine]") {
  ManyRig rig;
  std::vector<void*> blocks;
  for (const Stream stream : rig.streams)
    blocks.push_back(rig.allocator.allocate(24 * kMiB, stream));
  for (void* block : blocks) rig.allocator.free(block);
  const std::int64_t reserved = rig.of(Stat::kReservedBytes).current;
  blocks.clear();
  for (std::size_t i = 0; i < kMany; ++i)
    blocks.push_back(rig.allocator.allocate(24 * kMiB, rig.stream()));
  CHECK(rig.of(Stat::kReservedBytes).current == reserved);
  for (void* block : blocks) rig.allocator.free(block);
}

TEST_CASE("many streams have addresses for their own on a device of any size", "[engine][pages]") {
  constexpr std::size_t streams = 600;
  const std::uint64_t capacity = GENERATE(16 * kGiB, kTiB, 16 * kTiB);
  INFO("a device of " << capacity / kGiB << " GiB");
  SimRig rig("background_thread:false", simOf(capacity));
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < streams; ++i)
    blocks.push_back(rig.allocator.allocate(512, rig.stream()));
  CHECK(countOf(rig.sim(), Call::kReserve) == streams);  // none was refused
  CHECK(reservedOf(rig.allocator) == std::int64_t(streams * 2 * kMiB));
  for (void* block : blocks) rig.allocator.free(block);
}

TEST_CASE("a stream takes little host memory", "[engine]") {
  SimRig rig("", simOf(64 * kGiB));
  const auto host = [&](int more) {
    for (int i = 0; i < more; ++i) (void)rig.allocator.allocate(1'000, rig.stream());
    return rig.allocator.memoryStats().host_bytes;
  };
  const std::uint64_t first = host(200);
  CHECK((host(800) - first) / 800 <= 8 * kKiB);
}

}  // namespace cistern::test
