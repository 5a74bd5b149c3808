// Blocks at a multiple of an alignment that the program names.
#include <atomic>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

bool isAligned(const void* block, std::size_t alignment) {
  return (toAddress(block) & (alignment - 1)) == 0;
}

std::uint64_t callsOf(SimRig& rig) {
  const CallCounts counts = rig.sim().callCounts();
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

/// Blocks in use. No two may share a byte.
class Apart {
 public:
  void add(const CachingAllocator& allocator, void* block) {
    const Address begin = toAddress(block), end = begin + allocator.blockSize(block);
    const auto behind = ends_.lower_bound(begin);
    CHECK((behind == ends_.end() || behind->first >= end));
    CHECK((behind == ends_.begin() || std::prev(behind)->second <= begin));
    ends_.emplace(begin, end);
  }
  void remove(void* block) { ends_.erase(toAddress(block)); }

 private:
  std::map<Address, Address> ends_;
};

}  // namespace

TEST_CASE("a block lies at a multiple of the alignment asked for", "[engine][gpu-too]") {
  forEachBackend([](DeviceWork& work) {
    INFO("backend: " << work.device().backend());
    CachingAllocator allocator(work.device(), optionsOf());
    Apart apart;
    std::vector<void*> blocks;
    for (std::size_t alignment = 1; alignment <= kMostAlignment; alignment *= 2) {
      for (const std::size_t bytes :
           {std::size_t{1}, std::size_t{3000 * kKiB}, std::size_t{17 * kMiB}}) {
        void* const block = allocator.allocate(bytes, Stream{}, alignment);
        CHECK(isAligned(block, alignment));
        CHECK(allocator.blockSize(block) >= bytes);
        apart.add(allocator, block);
        blocks.push_back(block);
      }
    }
    CHECK(allocator.allocate(0, Stream{}, kMostAlignment) == nullptr);
    allocator.audit();
    for (void* block : blocks) allocator.free(block);
    allocator.audit();
  });
}

TEST_CASE("memory before an aligned block stays free", "[engine]") {
  SimRig rig;
  const Stream stream = rig.stream();
  (void)rig.allocator.allocate(2 * kMiB, stream);  // so that a page or a segment begins with it
  void* const odd = rig.allocator.allocate(3 * kMiB + 512, stream);
  void* const block = rig.allocator.allocate(5 * kMiB, stream, kMostAlignment);
  const MemoryStats stats = rig.allocator.memoryStats();
  CHECK(stats[Stat::kAllocatedBytes].current == std::int64_t(10 * kMiB + 512));
  rig.allocator.free(odd);
  const std::int64_t reserved = rig.allocator.memoryStats()[Stat::kReservedBytes].current;
  // What was freed and what was left before the block are one.
  const std::size_t head = toAddress(block) - toAddress(odd);
  if (onPages(rig.allocator)) {
    CHECK(rig.allocator.allocate(head, stream) == odd);
    CHECK(rig.allocator.memoryStats()[Stat::kReservedBytes].current == reserved);
  }
}

TEST_CASE("free memory that lies right serves without the slack", "[engine]") {
  SimRig rig;
  const Stream stream = rig.stream();
  void* const block = rig.allocator.allocate(8 * kMiB, stream, kMostAlignment);
  rig.allocator.free(block);
  const std::uint64_t calls = callsOf(rig);
  for (int i = 0; i < 10; ++i) {
    void* const again = rig.allocator.allocate(8 * kMiB, stream, kMostAlignment);
    CHECK(isAligned(again, kMostAlignment));
    rig.allocator.free(again);
  }
  CHECK(callsOf(rig) == calls);
}

TEST_CASE("ten thousand blocks are aligned to 2 MiB", "[engine]") {
  SimRig rig("", simOf(64 * kGiB));
  const Stream stream = rig.stream();
  std::mt19937 random(7001);
  std::vector<void*> blocks;
  Apart apart;
  for (int i = 0; i < 10'000; ++i) {
    const std::size_t bytes = std::size_t{512} << (random() % 13);
    blocks.push_back(rig.allocator.allocate(bytes, stream, kMostAlignment));
    CHECK(isAligned(blocks.back(), kMostAlignment));
    apart.add(rig.allocator, blocks.back());
    if (random() % 3 == 0) {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      apart.remove(blocks.back());
      rig.allocator.free(blocks.back());
      blocks.pop_back();
    }
  }
  rig.allocator.audit();
  for (void* block : blocks) rig.allocator.free(block);
  rig.allocator.emptyCache();
  CHECK(rig.allocator.memoryStats()[Stat::kReservedBytes].current == 0);
}

TEST_CASE("threads allocate with and without an alignment", "[engine][threads]") {
  SimRig rig("", simOf(8 * kGiB));
  const Stream shared = rig.stream();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (unsigned seed = 0; seed < 4; ++seed) {
    const Stream stream = seed % 2 ? shared : rig.stream();
    threads.emplace_back([&, seed, stream] {
      std::mt19937 random(seed);
      std::vector<void*> blocks;
      for (int i = 0; i < 2'000; ++i) {
        const std::size_t bytes = 1 + (std::size_t{1} << (random() % 23)),
                          alignment = std::size_t{1} << (random() % 22);
        blocks.push_back(random() % 2 ? rig.allocator.allocate(bytes, stream, alignment)
                                      : rig.allocator.allocate(bytes, stream));
        if (blocks.size() < 40) continue;
        std::swap(blocks[random() % blocks.size()], blocks.back());
        rig.allocator.free(blocks.back());
        blocks.pop_back();
      }
      for (void* block : blocks) rig.allocator.free(block);
      for (int i = 0; i < 200; ++i) {
        void* const block = rig.allocator.allocate(700, stream, 64 * kKiB);
        wrong += isAligned(block, 64 * kKiB) ? 0 : 1;
        rig.allocator.free(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(rig.allocator.memoryStats()[Stat::kAllocation].current == 0);
}

TEST_CASE("free memory that lies right is found behind any that does not", "[engine]") {
  for (const char* conf : {"", "thread_cache:off"}) {
    SimRig rig(conf);
    const Stream stream = rig.stream();
    rig.allocator.setLimit(2 * kMiB);
    std::vector<void*> aligned, odd;
    for (int i = 0; i < 512; ++i) {
      aligned.push_back(rig.allocator.allocate(2 * kKiB, stream, 4 * kKiB));
      odd.push_back(rig.allocator.allocate(2 * kKiB, stream));
    }
    for (int i = 2; i < 512; ++i) rig.allocator.free(aligned[std::size_t(i)]);
    rig.allocator.free(odd.front());
    for (int i = 2; i < 512; ++i)
      CHECK(isAligned(rig.allocator.allocate(2 * kKiB, stream, 4 * kKiB), 4 * kKiB));
  }
}

TEST_CASE("a small block in large memory is counted there until it is free", "[engine]") {
  SimRig rig;
  const Stream stream = rig.stream();
  for (int i = 0; i < 11; ++i)
    rig.allocator.free(rig.allocator.allocate(1000, stream, kMostAlignment));
  const MemoryStats stats = rig.allocator.memoryStats();
  for (const auto& counts : {stats.small_pool, stats.large_pool}) {
    for (const Stat stat : {Stat::kAllocation, Stat::kAllocatedBytes, Stat::kRequestedBytes})
      CHECK(counts[std::size_t(stat)].current == 0);
  }
}

TEST_CASE("an aligned request keeps to the largest split", "[engine]") {
  SimRig rig("backing:segments,max_split_size:20MiB,large_segment_size:2MiB");
  const Stream stream = rig.stream();
  for (int i = 0; i < 10; ++i)
    rig.allocator.free(rig.allocator.allocate(17 * kMiB, stream, kMostAlignment));
  CHECK(rig.allocator.memoryStats()[Stat::kReservedBytes].current <= std::int64_t(20 * kMiB));
  rig.allocator.emptyCache();
  void* const large = rig.allocator.allocate(30 * kMiB, stream, kMostAlignment);
  void* const small = rig.allocator.allocate(1536 * kKiB, stream);
  const BaseAllocation in = rig.allocator.getBaseAllocation(small);
  CHECK(in.base != rig.allocator.getBaseAllocation(large).base);
}

TEST_CASE("another stream's free memory that lies right serves an aligned request", "[engine]") {
  SimRig rig("backing:segments");
  const Stream first = rig.stream(), second = rig.stream();
  rig.allocator.setLimit(20 * kMiB);
  std::vector<void*> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(rig.allocator.allocate(4 * kMiB, first));
  for (std::size_t i = 0; i < 5; i += 2) rig.allocator.free(blocks[i]);
  CHECK(isAligned(rig.allocator.allocate(4 * kMiB, second, 4 * kKiB), 4 * kKiB));
}

TEST_CASE("a segment is no larger for an alignment that the device gives", "[engine]") {
  SimRig rig("backing:segments,large_segment_size:2MiB");
  rig.allocator.setLimit(8 * kMiB);
  CHECK(isAligned(rig.allocator.allocate(8 * kMiB, rig.stream(), kMostAlignment), kMostAlignment));
}

TEST_CASE("an alignment that is none is refused", "[engine]") {
  SimRig rig;
  const Stream stream = rig.stream();
  for (const std::size_t alignment :
       {std::size_t{0}, std::size_t{3}, std::size_t{768}, std::size_t{4 * kMiB}}) {
    CHECK_THROWS_WITH(
        rig.allocator.allocate(512, stream, alignment),
        Catch::Matchers::ContainsSubstring("the alignment is " + std::to_string(alignment)));
  }
  rig.allocator.setLimit(16 * kMiB);
  CHECK_THROWS_WITH(rig.allocator.allocate(64 * kMiB, stream, kMostAlignment),
                    Catch::Matchers::ContainsSubstring("64.00 MiB at a multiple of 2.00 MiB"));
  CHECK(rig.allocator.memoryStats()[Stat::kAllocation].current == 0);
}

}  // namespace cistern::test
