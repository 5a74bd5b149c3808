// Threads, allocators, streams and pools that come and go while caches are full.
#include <atomic>
#include <barrier>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "allocator/engine/paths/slow_path.hpp"
#include "allocator/reports/accounting.hpp"
#include "tests/engine/cache/thread_cache_support.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

sim::SimConfig roomyReusingStreams() {
  sim::SimConfig config = roomySim();
  config.reuse_streams = true;
  return config;
}

/// A random mix of sizes; what is still held at the end is freed.
void mix(CachingAllocator& allocator, Stream stream, unsigned seed, int steps) {
  std::mt19937 random(seed);
  std::vector<void*> held;
  for (int i = 0; i < steps; ++i) {
    if (held.size() < 20 && random() % 2 == 0) {
      held.push_back(
          allocator.allocate(1 + random() % (random() % 8 ? 40 * kKiB : 3 * kMiB), stream));
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      allocator.free(held.back());
      held.pop_back();
    }
  }
  for (void* block : held) allocator.free(block);
}

/// All requests to one pool.
struct ToPool final : Router {
  explicit ToPool(Pool& to) : pool(&to) {}
  Route route(Stream, Asked) override { return {pool}; }
  Pool* pool;
};

}  // namespace

// ---- Threads -----------------------------------------------------------------------------------

TEST_CASE("a thread's end gives back all that it kept", "[engine]") {
  SimRig rig("background_thread:false", roomySim());
  const Stream stream = rig.stream(), other = rig.stream();
  for (const bool other_stream : {false, true}) {
    IdleThread owner;
    owner.keep(rig.allocator, 16, 64 * kKiB, stream);
    owner.keep(rig.allocator, 1, 20 * kMiB, stream);
    owner.end();
    const std::int64_t reserved = reservedOf(rig.allocator);
    void* large = rig.allocator.allocate(20 * kMiB, other_stream ? other : stream);
    CHECK(reservedOf(rig.allocator) == reserved);
    rig.allocator.free(large);
    rig.allocator.emptyCache();
    CHECK(reservedOf(rig.allocator) == 0);
  }
}

TEST_CASE("what others free after a thread's end is free", "[engine]") {
  SimRig rig("background_thread:false", roomySim());
  const Stream stream = rig.stream();
  IdleThread owner;
  std::vector<void*> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(owner.allocate(rig.allocator, 4 * kKiB, stream));
  for (int i = 0; i < 10; ++i) rig.allocator.free(blocks[std::size_t(i)]);  // on their way
  owner.end();
  for (int i = 10; i < 20; ++i) rig.allocator.free(blocks[std::size_t(i)]);
  CHECK(nowOf(rig.allocator, Stat::kAllocation) == 0);
  CHECK(rig.allocator.memoryStats().num_misuses == 0);
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("threads that come and go take no more host memory than those at once", "[engine]") {
  SimRig rig("background_thread:false", roomySim());
  const Stream stream = rig.stream();
  std::uint64_t first = 0;
  for (int i = 0; i < 50; ++i) {
    IdleThread thread;
    thread.keep(rig.allocator, 8, 4 * kKiB, stream);
    thread.end();
    if (i == 9) first = rig.allocator.memoryStats().host_bytes;
  }
  CHECK(rig.allocator.memoryStats().host_bytes == first);
}

// ---- Allocators --------------------------------------------------------------------------------

TEST_CASE("a thread ends after the allocator that it used", "[engine]") {
  sim::SimDevice device(roomySim());
  IdleThread owner, other;
  for (int round = 0; round < 3; ++round) {
    auto allocator = std::make_unique<CachingAllocator>(device, optionsOf());
    owner.keep(*allocator, 16, 64 * kKiB, {});
    void* held = owner.allocate(*allocator, 4 * kKiB, {});
    other.keep(*allocator, 16, 64 * kKiB, {});
    other.free(*allocator, held);
    if (round == 2) other.end();
    allocator.reset();
    CHECK(takenOf(device) == 0);
  }
  owner.end();
  CachingAllocator allocator(device, optionsOf());
  mix(allocator, {}, 1, 1'000);
  allocator.audit();
}

TEST_CASE("a thread that knew a gone allocator takes nothing of its from another's", "[engine]") {
  sim::SimDevice first_device(roomySim());
  sim::SimConfig config = roomySim();
  config.ordinal = 1;
  sim::SimDevice second_device(config);
  IdleThread owner;
  auto first = std::make_unique<CachingAllocator>(first_device, optionsOf());
  owner.keep(*first, 16, 64 * kKiB, {});
  first.reset();
  CachingAllocator second(second_device, optionsOf());
  void* block = owner.allocate(second, 64 * kKiB, {});
  CHECK(second.blockSize(block) == 64 * kKiB);
  owner.free(second, block);
  second.audit();
  CHECK(nowOf(second, Stat::kAllocation) == 0);
}

TEST_CASE("threads go on to other allocators while those they used come and go", "[engine]") {
  constexpr std::size_t kThreads = 8, kAllocators = 4;
  sim::SimDevice device(simOf(64 * kGiB));
  std::array<std::unique_ptr<CachingAllocator>, kAllocators> allocators;
  for (auto& allocator : allocators) {
    allocator = std::make_unique<CachingAllocator>(device, optionsOf("background_thread:false"));
  }
  std::atomic<int> left_over{0};
  std::size_t next = 0;
  // Between two rounds nobody uses any of them: one goes, and another comes.
  std::barrier round(kThreads, [&]() noexcept {
    const auto& oldest = allocators[next];
    oldest->audit();
    left_over += nowOf(*oldest, Stat::kAllocation) != 0;
    left_over += oldest->memoryStats().num_misuses != 0;
    allocators[next] =
        std::make_unique<CachingAllocator>(device, optionsOf("background_thread:false"));
    next = (next + 1) % kAllocators;
  });
  onThreads(kThreads, [&](std::size_t i) {
    const Stream stream = device.createStream().orThrow();
    for (std::size_t n = 0; n < 60; ++n) {
      for (std::size_t turn = 0; turn < 4; ++turn) {
        CachingAllocator& allocator = *allocators[(i + n * turn) % kAllocators];
        mix(allocator, turn % 2 == 0 ? stream : Stream{}, unsigned(n + turn), 40);
      }
      round.arrive_and_wait();
    }
  });
  CHECK(left_over == 0);
  for (auto& allocator : allocators) allocator.reset();
  CHECK(takenOf(device) == 0);
}

TEST_CASE("threads make and destroy allocators of their own beside a shared one", "[engine]") {
  sim::SimDevice device(simOf(64 * kGiB));
  CachingAllocator shared(device, optionsOf("background_thread:false"));
  onThreads(8, [&](std::size_t i) {
    const Stream stream = device.createStream().orThrow();
    std::unique_ptr<CachingAllocator> own;
    for (unsigned n = 0; n < 40; ++n) {
      if (n % 3 == 0) {
        own = std::make_unique<CachingAllocator>(device, optionsOf("background_thread:false"));
      }
      mix(*own, stream, n, 50);
      mix(shared, n % 2 == 0 ? stream : Stream{}, unsigned(i) + n, 50);
      if (n % 5 == 0) std::thread([&] { mix(shared, stream, n, 20); }).join();
    }
  });
  shared.audit();
  CHECK(nowOf(shared, Stat::kAllocation) == 0);
  CHECK(shared.memoryStats().num_misuses == 0);
}

// ---- Pools and streams -------------------------------------------------------------------------

TEST_CASE("what a router sends to a pool does not come from a thread's full cache", "[engine]") {
  SimRig rig("background_thread:false", roomySim());
  const Stream stream = rig.stream();
  Pool& pool = rig.allocator.engine().pools.open({0, 1}, {});
  ToPool router(pool);
  void* kept = rig.allocator.allocate(4 * kKiB, stream);
  void* held = rig.allocator.allocate(4 * kKiB, stream);
  rig.allocator.free(kept);
  rig.allocator.engine().pools.setRouter(&router);
  void* in_pool = rig.allocator.allocate(4 * kKiB, stream);
  CHECK(in_pool != kept);
  const std::vector<LiveBlock> live = liveBlocks(pool);
  REQUIRE(live.size() == 1);
  CHECK(live[0].address == toAddress(in_pool));
  rig.allocator.free(held);  // of the default pool, while requests go elsewhere
  rig.allocator.free(in_pool);
  CHECK(liveBlocks(pool).empty());
  CHECK(rig.allocator.allocate(4 * kKiB, stream) == in_pool);
  rig.allocator.engine().pools.setRouter(nullptr);
  const std::set<void*> again = {rig.allocator.allocate(4 * kKiB, stream),
                                 rig.allocator.allocate(4 * kKiB, stream)};
  CHECK(again == std::set<void*>{held, kept});
  for (void* block : {in_pool, held, kept}) rig.allocator.free(block);
  rig.allocator.engine().pools.drain(pool);
  CHECK(nowOf(rig.allocator, Stat::kAllocation) == 0);
}

// Means something under the thread sanitizer: the heaps of one stream have a lock each.
TEST_CASE("frees into a pool leave the cache of the same stream alone", "[engine]") {
  SimRig rig("background_thread:false", roomySim());
  const Stream stream = rig.stream();
  Pool& pool = rig.allocator.engine().pools.open({0, 1}, {});
  onThreads(2, [&](std::size_t i) {
    for (unsigned round = 0; round < 30; ++round) {
      mix(rig.allocator, stream, round, 20);
      std::vector<void*> blocks;
      for (std::size_t n = 0; n < 20; ++n) {
        const std::size_t bytes = (1 + n % 5) * 700 * kKiB;
        blocks.push_back(i == 0 ? slow_path::allocate(rig.allocator.engine(), bytes, stream, pool)
                                : rig.allocator.allocate(bytes, stream));
      }
      for (void* block : blocks) rig.allocator.free(block);
      if (round % 4 == 0) rig.allocator.emptyCache();
    }
  });
  rig.allocator.engine().pools.drain(pool);
  CHECK(nowOf(rig.allocator, Stat::kAllocation) == 0);
}

TEST_CASE("a forgotten stream's full caches go to the new one with its handle, in order",
          "[engine]") {
  SimRig rig("background_thread:false", roomyReusingStreams());
  IdleThread owner;
  const Stream old = rig.stream();
  void* block = nullptr;
  owner.run([&] {
    block = rig.allocator.allocate(4 * kKiB, old);
    rig.allocator.free(block);
    block = rig.allocator.allocate(4 * kKiB, old);
    rig.touch(old, block);
    rig.work.delay(old, kLongNs);
    rig.touch(old, block);
    rig.allocator.free(block);  // into its cache; work on the stream still uses it
  });
  rig.allocator.forgetStream(old);
  rig.sim().destroyStream(old).orThrow();
  const Stream young = rig.stream();
  REQUIRE(young == old);
  const std::uint64_t orders = countOf(rig.sim(), Call::kWaitEvent);
  owner.run([&] {
    void* again = rig.allocator.allocate(4 * kKiB, young);
    rig.touch(young, again);  // a race, if it is that block and the stream was not ordered
    rig.allocator.free(again);
  });
  CHECK(countOf(rig.sim(), Call::kWaitEvent) == orders + 1);
  owner.run([&] {
    const CallCounts before = rig.sim().callCounts();
    rig.allocator.free(rig.allocator.allocate(4 * kKiB, young));
    block = rig.sim().callCounts() == before ? block : nullptr;
  });
  CHECK(block != nullptr);  // from its cache again, without a call
  CHECK(rig.sim().callsOnDeadStreams() == 0);
}

TEST_CASE("a forgotten stream's caches serve others at once when its work is complete",
          "[engine]") {
  SimRig rig("background_thread:false,limit:32M", roomySim());
  IdleThread owner;
  const Stream gone = rig.stream(), other = rig.stream();
  owner.keep(rig.allocator, 32, 64 * kKiB, gone);
  rig.allocator.forgetStream(gone);
  rig.sim().destroyStream(gone).orThrow();
  void* all = rig.allocator.allocate(31 * kMiB, other);
  rig.allocator.free(all);
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
  CHECK(rig.sim().callsOnDeadStreams() == 0);
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)
// An allocator that goes while the host is short of memory leaves its caches as they are.
TEST_CASE("what a cache that is used again keeps is had back", "[engine]") {
  SimRig rig("", roomySim());
  IdleThread owner;
  const Stream stream = rig.stream();
  for (const bool refused : {true, false}) {
    const Options options = Options::parse("background_thread:false");
    auto allocator = std::make_unique<CachingAllocator>(rig.sim(), options);
    owner.free(*allocator, owner.allocate(*allocator, 4 * kKiB, stream));
    owner.run([&] { allocator->emptyCache(); });
    void* first = owner.allocate(*allocator, 4 * kKiB, stream);
    void* block = owner.allocate(*allocator, 4 * kKiB, stream);
    owner.free(*allocator, first);
    if (!refused) allocator->emptyCache();
    allocator->free(block);  // on its way to the owner's cache
    if (!refused) {
      allocator->emptyCache();
      CHECK(reservedOf(*allocator) == 0);
    }
    int requests = 0;
    const AtHostAllocations at([&] {
      if (refused && ++requests == 1) throw std::bad_alloc();
    });
    allocator.reset();
  }
}
#endif

}  // namespace cistern::test
