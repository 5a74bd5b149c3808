// What a thread keeps of what it has freed: who gets it back, and that it is in nobody's way.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>

#include "allocator/engine/paths/slow_path.hpp"
#include "tests/engine/cache/thread_cache_support.hpp"

namespace cistern::test {
namespace {

/// An allocator on a roomy device, of which no thread of its own gives anything back meanwhile.
struct CacheRig : SimRig {
  explicit CacheRig(const std::string& conf = "thread_cache:2M", sim::SimConfig config = roomySim())
      : SimRig("background_thread:false," + conf, std::move(config)) {}
};

/// Peaks are far away, so that no hit publishes.
struct MissRig : CacheRig {
  explicit MissRig(const std::string& conf) : CacheRig(conf) {
    owner.keep(allocator, 6'000, 8 * kKiB, own);
    owner.keep(allocator, 3, 100 * kMiB, own);
    allocator.emptyCache();
    allocator.free(allocator.allocate(kKiB, own));  // this thread's own cache is there
    allocator.emptyCache();
  }
  /// How many blocks this thread gets on the stream before the first miss.
  std::size_t hits(std::size_t bytes) {
    std::vector<void*> blocks;
    blocks.reserve(20'000);
    const std::uint64_t before = allocator.misses();
    while (allocator.misses() == before) blocks.push_back(allocator.allocate(bytes, own));
    for (void* block : blocks) allocator.free(block);
    return blocks.size() - 1;
  }
  const Stream own = stream();
  IdleThread owner;
};

/// How many blocks of that size another thread, now idle, keeps after it has freed `count`: as many
/// as the heap has more of when all caches have been put back.
std::size_t keptOf(const std::string& conf, std::size_t count, std::size_t bytes) {
  std::size_t hits[2] = {};
  for (const bool put_back : {false, true}) {
    MissRig rig(conf);
    void* anchor = rig.allocator.allocate(64 * kMiB, rig.own);  // far from low water
    rig.owner.keep(rig.allocator, count, bytes, rig.own);
    if (put_back) (void)rig.allocator.cacheInfo();
    hits[put_back] = rig.hits(bytes);
    rig.allocator.free(anchor);
  }
  CHECK(hits[1] >= count);
  return hits[1] - hits[0];
}

}  // namespace

// ---- Who gets it back --------------------------------------------------------------------------

TEST_CASE("a freed block is had back at once by the same thread", "[engine]") {
  CacheRig rig;
  const Stream stream = rig.stream();
  for (std::size_t bytes :
       {std::size_t{1}, std::size_t{512}, 5 * kKiB, 64 * kKiB, 200 * kKiB, 900 * kKiB, 3 * kMiB}) {
    INFO(bytes);
    void* block = rig.allocator.allocate(bytes, stream);
    void* after = rig.allocator.allocate(bytes, stream);
    rig.allocator.free(block);
    rig.allocator.free(rig.allocator.allocate(bytes, stream));
    const CallCounts before = rig.sim().callCounts();
    CHECK(rig.allocator.allocate(bytes, stream) == block);
    CHECK(rig.sim().callCounts() == before);
    rig.allocator.free(after);
    rig.allocator.free(block);
  }
}

TEST_CASE("the block that was freed last comes back first", "[engine]") {
  CacheRig rig;
  leaveCached(rig.allocator, 8, kKiB, {});
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(rig.allocator.allocate(kKiB));
  for (void* block : blocks) rig.allocator.free(block);
  for (std::size_t i = blocks.size(); i-- > 0;) CHECK(rig.allocator.allocate(kKiB) == blocks[i]);
  for (void* block : blocks) rig.allocator.free(block);
}

TEST_CASE("what a thread keeps of one stream is not another stream's while there is other memory",
          "[engine]") {
  CacheRig rig;
  const Stream own = rig.stream(), other = rig.stream();
  void* anchor = rig.allocator.allocate(4 * kKiB, other);  // its stream's memory stays its own
  leaveCached(rig.allocator, 1, kKiB, own);
  void* block = rig.allocator.allocate(kKiB, own);
  rig.allocator.free(block);
  void* elsewhere = rig.allocator.allocate(kKiB, other);
  CHECK(elsewhere != block);
  CHECK(rig.allocator.allocate(kKiB, own) == block);
  for (void* one : {block, elsewhere, anchor}) rig.allocator.free(one);
}

TEST_CASE("a block that another thread frees comes back to the one that allocated it", "[engine]") {
  CacheRig rig;
  const Stream stream = rig.stream();
  IdleThread owner, other;
  std::vector<void*> blocks;
  for (int i = 0; i < 10; ++i) blocks.push_back(owner.allocate(rig.allocator, 4 * kKiB, stream));
  for (void* block : blocks) other.free(rig.allocator, block);
  std::vector<void*> again;
  for (int i = 0; i < 10; ++i) again.push_back(owner.allocate(rig.allocator, 4 * kKiB, stream));
  for (void* block : again) owner.free(rig.allocator, block);
  std::sort(blocks.begin(), blocks.end());
  std::sort(again.begin(), again.end());
  CHECK(again == blocks);
}

TEST_CASE("a block that another thread frees counts as free at once", "[engine]") {
  CacheRig rig;
  const Stream stream = rig.stream();
  IdleThread owner;
  for (std::size_t bytes : {4 * kKiB, 3 * kMiB}) {
    void* block = owner.allocate(rig.allocator, bytes, stream);
    CHECK(nowOf(rig.allocator, Stat::kAllocatedBytes) == std::int64_t(bytes));
    rig.allocator.free(block);
    const MemoryStats stats = rig.allocator.memoryStats();
    for (Stat stat : {Stat::kAllocation, Stat::kAllocatedBytes, Stat::kRequestedBytes,
                      Stat::kActive, Stat::kActiveBytes}) {
      CHECK(stats[stat].current == 0);
      CHECK(stats[stat].freed == stats[stat].allocated);
    }
    CHECK(std::int64_t(rig.allocator.cacheInfo().free_bytes) == reservedOf(rig.allocator));
  }
}

TEST_CASE("more than fits on the way to another thread is free all the same", "[engine]") {
  CacheRig rig;
  const Stream stream = rig.stream();
  IdleThread owner;
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(owner.allocate(rig.allocator, 64 * kKiB, stream));
  for (void* block : blocks) rig.allocator.free(block);  // 6.4 MiB; 1 MiB of it fits
  CHECK(nowOf(rig.allocator, Stat::kAllocation) == 0);
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("a recorded use is waited for though the block was in a cache before", "[engine]") {
  CacheRig rig;
  const Stream own = rig.stream(), user = rig.stream();
  void* block = rig.allocator.allocate(4 * kKiB, own);
  rig.allocator.free(block);
  REQUIRE(rig.allocator.allocate(4 * kKiB, own) == block);
  rig.work.delay(user, kLongNs);
  rig.touch(user, block);
  rig.allocator.recordStream(block, user);
  rig.allocator.free(block);
  CHECK(nowOf(rig.allocator, Stat::kActive) == 1);
  void* next = rig.allocator.allocate(4 * kKiB, own);
  CHECK(next != block);
  rig.touch(own, next);  // a race, were it the same memory
  rig.allocator.free(next);
  rig.sim().synchronizeDevice().orThrow();
  rig.allocator.free(rig.allocator.allocate(9 * kMiB, own));  // a miss looks
  CHECK(nowOf(rig.allocator, Stat::kActive) == 0);
}

// ---- Whose it is in need -----------------------------------------------------------------------

TEST_CASE("emptyCache takes back what an idle thread keeps", "[engine]") {
  CacheRig rig;
  const Stream stream = rig.stream();
  IdleThread owner;
  owner.keep(rig.allocator, 16, 64 * kKiB, stream);
  owner.keep(rig.allocator, 1, 20 * kMiB, stream);
  CHECK(reservedOf(rig.allocator) > 0);
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
  CHECK(takenOf(rig.sim()) == 0);
  owner.keep(rig.allocator, 16, 64 * kKiB, stream);  // it goes on
}

TEST_CASE("emptyCache comes between a thread's allocations and frees", "[engine]") {
  CacheRig rig;
  std::atomic<int> working{3};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i, stream = rig.stream()] {
      for (int round = 0; round < 3'000; ++round) {
        void* small = rig.allocator.allocate(512 * (i + 1), stream);
        void* larger = rig.allocator.allocate(kMiB + kKiB, stream);
        rig.allocator.free(small);
        rig.allocator.free(larger);
      }
      --working;
    });
  }
  std::uint64_t wrong = 0;
  while (working > 0) {
    rig.allocator.emptyCache();
    wrong += nowOf(rig.allocator, Stat::kAllocation) > 6;
    rig.allocator.audit();
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(nowOf(rig.allocator, Stat::kAllocation) == 0);
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("what an idle thread keeps serves others before they are out of memory", "[engine]") {
  for (const char* conf : {"limit:4M", "limit:64M"}) {
    for (const bool pool : {false, true}) {
      INFO(conf << (pool ? ", a pool" : ", another stream"));
      CacheRig rig(conf);
      const std::uint64_t limit = rig.allocator.limit();
      const Stream own = rig.stream(), other = rig.stream();
      IdleThread owner;
      limit == 4 * kMiB ? owner.keep(rig.allocator, 64, 64 * kKiB, own)
                        : owner.keep(rig.allocator, 1, 60 * kMiB, own);
      Pool& kept_apart = rig.allocator.engine().pools.open({0, 1}, {});
      void* block =
          pool ? slow_path::allocate(rig.allocator.engine(), limit - kMiB, other, kept_apart)
               : rig.allocator.allocate(limit - kMiB, other);
      CHECK(block != nullptr);
      CHECK(rig.allocator.memoryStats().num_ooms == 0);
      rig.allocator.free(block);
      rig.allocator.engine().pools.drain(kept_apart);
    }
  }
}

TEST_CASE("what an idle thread keeps serves others of a small device", "[engine]") {
  CacheRig rig("thread_cache:256K", simOf(32 * kMiB));
  const Stream own = rig.stream(), other = rig.stream();
  IdleThread owner;
  std::vector<void*> blocks;
  owner.keep(rig.allocator, 500, 64 * kKiB, own);
  try {
    for (;;) blocks.push_back(rig.allocator.allocate(64 * kKiB, other));
  } catch (const OutOfMemory&) {
  }
  CHECK(blocks.size() == 512);
  for (void* block : blocks) rig.allocator.free(block);
}

// ---- How much it is ----------------------------------------------------------------------------

TEST_CASE("a thread keeps no more of small blocks than the option says", "[engine]") {
  struct Bound {
    const char* conf;
    std::uint64_t bytes;
  };
  for (const Bound bound : {Bound{"thread_cache:off", 0},
                            {"thread_cache:64K", 64 * kKiB},
                            {"thread_cache:2M", 2 * kMiB}}) {
    for (const std::size_t bytes : {8 * kKiB, 64 * kKiB, 100 * kKiB}) {
      INFO(bound.conf << ", blocks of " << bytes);
      const std::size_t kept = keptOf(bound.conf, 4 * kMiB / bytes, bytes);
      const bool shares = bytes > 64 * kKiB;  // a stack with other sizes
      const std::uint64_t most = shares ? bound.bytes - bound.bytes / 4 : bound.bytes;
      CHECK(kept * bytes <= most);
      CHECK(kept * bytes + bytes > most / 2);
    }
  }
}

enum class Others { kNone, kOne, kGone };

/// Whether the larger block that a thread frees last is the one that it gets next, rather than
/// where it would fit best. `others`: whether another thread uses the stream as well, or has.
bool keepsLast(const std::string& conf, std::size_t bytes, Others others = Others::kNone) {
  CacheRig rig(conf);
  const Stream stream = rig.stream();
  auto other = std::make_unique<IdleThread>();
  // This thread has kept one before the other comes.
  for (int i = 0; i < 2; ++i) rig.allocator.free(rig.allocator.allocate(bytes, stream));
  if (others != Others::kNone) other->keep(rig.allocator, 1, kKiB, stream);
  if (others == Others::kGone) other.reset();
  (void)rig.allocator.cacheInfo();
  void* const anchor = rig.allocator.allocate(64 * kMiB, stream);  // far from low water
  std::array<void*, 4> blocks{};
  const auto takeAll = [&] {
    for (void*& block : blocks) block = rig.allocator.allocate(bytes, stream);
  };
  const auto freeAll = [&] {  // where it fits best, at blocks[0], is neither the first nor the last
    for (const std::size_t i : {1u, 0u, 2u, 3u}) rig.allocator.free(blocks[i]);
  };
  for (int i = 0; i < 3; ++i) takeAll(), freeAll();  // what is a new high goes to the heap
  (void)rig.allocator.cacheInfo();
  takeAll();
  freeAll();
  void* const again = rig.allocator.allocate(bytes, stream);
  rig.allocator.free(again);
  rig.allocator.free(anchor);
  const bool kept = again == blocks[3];
  CAPTURE(conf, bytes, again, blocks[0], blocks[1], blocks[2], blocks[3]);
  CHECK((kept || again == blocks[0]));
  return kept;
}

TEST_CASE("a thread keeps the larger block that it freed last, of a size that the option says",
          "[engine]") {
  CHECK_FALSE(keepsLast("thread_cache:off", 2 * kMiB));
  CHECK(keepsLast("thread_cache:512K", 2 * kMiB));
  CHECK_FALSE(keepsLast("thread_cache:512K", 3 * kMiB));
  CHECK(keepsLast("thread_cache:2M", 200 * kKiB));
  CHECK(keepsLast("thread_cache:2M", 3 * kMiB));
  CHECK(keepsLast("thread_cache:2M", 900 * kKiB));
}

TEST_CASE("no thread keeps a large block of a stream that several use", "[engine]") {
  CHECK_FALSE(keepsLast("thread_cache:2M", 2 * kMiB, Others::kOne));
  CHECK_FALSE(keepsLast("thread_cache:2M", 3 * kMiB, Others::kOne));
  CHECK(keepsLast("thread_cache:2M", 900 * kKiB, Others::kOne));
  CHECK(keepsLast("thread_cache:2M", 60 * kKiB, Others::kOne));
  CHECK(keepsLast("thread_cache:2M", 3 * kMiB, Others::kGone));
}

TEST_CASE("a thread keeps blocks of several sizes up to 1 MiB at once", "[engine]") {
  constexpr std::size_t kSizes[] = {100 * kKiB, 200 * kKiB, 300 * kKiB, 400 * kKiB};
  CacheRig rig("thread_cache:8M");
  const Stream stream = rig.stream();
  const auto get = [&](std::size_t bytes) { return rig.allocator.allocate(bytes, stream); };
  std::vector<void*> low, high, others{get(64 * kMiB)};  // far from low water
  for (const std::size_t bytes : kSizes) {
    for (std::vector<void*>* blocks : {&low, &high}) {
      blocks->push_back(get(bytes));
      others.push_back(get(4 * kKiB));  // nothing merges
    }
  }
  for (void* block : low) rig.allocator.free(block);
  (void)rig.allocator.cacheInfo();  // all of it is the heap's: where each size fits best
  for (void* block : high) rig.allocator.free(block);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < std::size(kSizes); ++i) {
    others.push_back(get(kSizes[i]));
    kept += others.back() == high[i] ? 1 : 0;
  }
  CHECK(kept >= 3);  // two sizes may share a stack
  for (void* block : others) rig.allocator.free(block);
}

TEST_CASE("a new peak leaves a thread its stacks", "[engine]") {
  CacheRig rig;
  const Stream stream = rig.stream();
  const auto get = [&](std::size_t bytes) { return rig.allocator.allocate(bytes, stream); };
  rig.allocator.free(get(256 * kMiB));
  std::vector<void*> blocks{get(64 * kMiB), get(8 * kKiB), get(8 * kKiB)};
  rig.allocator.resetPeakStats();
  const std::uint64_t misses = rig.allocator.misses();
  rig.allocator.free(blocks[1]);
  rig.allocator.free(blocks[2]);
  for (int i = 0; i < 4; ++i) blocks.push_back(get(8 * kMiB));  // each is a new peak of bytes
  CHECK(rig.allocator.misses() == misses);
  CHECK(get(8 * kKiB) == blocks[2]);
  CHECK(rig.allocator.memoryStats()[Stat::kAllocation].peak == 6);
  CHECK(rig.allocator.memoryStats()[Stat::kAllocatedBytes].peak == 96 * kMiB + 8 * kKiB);
  std::swap(blocks[1], blocks.back());
  blocks.pop_back();
  for (void* block : blocks) rig.allocator.free(block);
}

TEST_CASE("a thread that needs what it keeps takes it back by itself", "[engine]") {
  CacheRig rig("thread_cache:8M,limit:4M");
  const Stream stream = rig.stream();
  std::vector<void*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(rig.allocator.allocate(64 * kKiB, stream));
  const std::uint64_t misses = rig.allocator.misses();
  REQUIRE(reservedOf(rig.allocator) == 4 * kMiB);              // all of it is in use
  std::vector<void*> anchors(blocks.end() - 8, blocks.end());  // far from low water
  blocks.resize(blocks.size() - anchors.size());
  for (void* block : blocks) rig.allocator.free(block);
  std::vector<void*> larger;  // several of them, merged
  for (int i = 0; i < 3; ++i) larger.push_back(rig.allocator.allocate(kMiB, stream));
  CHECK(rig.allocator.misses() == misses);
  for (void* block : larger) rig.allocator.free(block);
  // Memory of another kind would be of no use: that is a miss, and there is nothing for it.
  CHECK_THROWS_AS(rig.allocator.allocate(8 * kMiB, stream), OutOfMemory);
  CHECK(rig.allocator.misses() == misses + 1);
  for (void* block : anchors) rig.allocator.free(block);
}

TEST_CASE("threads that there is no room for caches for keep nothing back", "[engine]") {
  CacheRig rig("thread_cache:2M", simOf(256 * kMiB));  // 4 MiB for all: two caches of small blocks
  const Stream stream = rig.stream();
  std::vector<std::unique_ptr<IdleThread>> threads;
  for (int i = 0; i < 6; ++i) threads.push_back(std::make_unique<IdleThread>());
  for (auto& thread : threads) thread->keep(rig.allocator, 64, 64 * kKiB, stream);
  // None of it is anything that must be got back from threads one by one.
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
  threads.clear();
  for (int i = 0; i < 6; ++i) {  // and an ended thread's part is had by others
    IdleThread thread;
    thread.keep(rig.allocator, 64, 64 * kKiB, stream);
  }
  CHECK(nowOf(rig.allocator, Stat::kAllocation) == 0);
}

}  // namespace cistern::test
