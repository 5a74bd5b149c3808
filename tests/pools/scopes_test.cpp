// Which requests a scope catches: its thread's, or those on its streams; and the innermost scope's.
#include <atomic>
#include <set>
#include <thread>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {

TEST_CASE("scopes nest, and the innermost catches", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool a(rig.pools), b(rig.pools);
  std::set<void*> in_a;
  void* in_b = nullptr;
  {
    const MemPoolScope outer(a);
    in_a.insert(rig.allocate(kMiB, s));
    {
      const MemPoolScope inner(b);
      in_b = rig.allocate(kMiB, s);
      CHECK(b.useCount() == 2);
    }
    in_a.insert(rig.allocate(kMiB, s));
    CHECK((a.useCount() == 2 && b.useCount() == 1));
  }
  void* outside = rig.allocate(kMiB, s);
  CHECK(rig.holds(a.id(), in_a));
  CHECK(rig.holds(b.id(), {in_b}));
  CHECK(rig.holds(a.id(), in_a));
  CHECK(a.useCount() == 1);
  for (void* block : in_a) rig.free(block);
  rig.free(in_b);
  rig.free(outside);
}

TEST_CASE("among scopes of a thread and of streams the one that began last catches", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), other = rig.stream();
  MemPool a(rig.pools), b(rig.pools), c(rig.pools);
  const MemPoolScope by_thread(a);
  {
    const MemPoolScope by_stream(b, PoolFilter::stream(s));
    CHECK(rig.allocator.poolFor(s) == b.id());
    CHECK(rig.allocator.poolFor(other) == a.id());
    const MemPoolScope inner(c);
    CHECK(rig.allocator.poolFor(s) == c.id());
  }
  CHECK(rig.allocator.poolFor(s) == a.id());
}

TEST_CASE("scopes that overlap end in any order", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool a(rig.pools), b(rig.pools);
  rig.pools.beginAllocateToPool(a.id(), PoolFilter::thisThread());
  rig.pools.beginAllocateToPool(b.id(), PoolFilter::thisThread());
  rig.pools.endAllocateToPool(a.id());
  CHECK(rig.allocator.poolFor(s) == b.id());
  rig.pools.endAllocateToPool(b.id());
  CHECK(rig.allocator.poolFor(s) == MempoolId_t{});
  rig.pools.releasePool(a.id());
  rig.pools.releasePool(b.id());
}

TEST_CASE("a thread's scope does not catch what other threads allocate", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  const MemPoolScope scope(pool);
  void* mine = rig.allocate(kMiB, s);
  void* theirs = nullptr;
  std::thread([&] { theirs = rig.allocate(kMiB, s); }).join();
  CHECK(rig.holds(pool.id(), {mine}));
  CHECK(rig.holds(pool.id(), {mine}));
  rig.free(mine);
  rig.free(theirs);
  CHECK(rig.holds(pool.id(), {}));
}

TEST_CASE("a free goes to the pool that the block is of, whatever scope there is", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool a(rig.pools), b(rig.pools);
  void* in_a = a.allocate(kMiB, s);
  void* in_default = rig.allocate(kMiB, s);
  {
    const MemPoolScope scope(b);
    rig.free(in_a);
    rig.free(in_default);
  }
  CHECK(a.allocate(kMiB, s) == in_a);
  CHECK(rig.allocate(kMiB, s) == in_default);
  CHECK(rig.reservedBy(b.id()) == 0);
}

TEST_CASE("a scope by streams catches workers, and only on its streams", "[pools]") {
  PoolRig rig;
  const Stream caught = rig.stream(), also = rig.stream(), other = rig.stream();
  MemPool pool(rig.pools);
  const std::set<Stream> streams{caught, also};
  const auto catches = [&](Stream stream) { return streams.contains(stream); };
  void *one = nullptr, *two = nullptr, *outside = nullptr;
  {
    const MemPoolScope scope(pool, PoolFilter::streams(catches));
    std::thread([&] { one = rig.allocate(kMiB, caught); }).join();
    std::thread([&] { two = rig.allocate(kMiB, also); }).join();
    std::thread([&] { outside = rig.allocate(kMiB, other); }).join();
  }
  CHECK(rig.holds(pool.id(), {one, two}));
  for (void* block : {one, two, outside}) rig.free(block);
}

TEST_CASE("a pool named with the request is taken, whatever scope there is", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool named(rig.pools), scoped(rig.pools);
  const MemPoolScope scope(scoped), by_stream(scoped, PoolFilter::stream(s));
  void *by_pools = nullptr, *by_mem_pool = nullptr;
  std::thread([&] {
    by_pools = rig.pools.allocate(kMiB, s, named.id());
    by_mem_pool = named.allocate(kMiB, s);
  }).join();
  CHECK(rig.holds(named.id(), {by_pools, by_mem_pool}));
  CHECK(named.useCount() == 1);
  CHECK(rig.reservedBy(scoped.id()) == 0);
  rig.free(by_pools);
  rig.free(by_mem_pool);
}

TEST_CASE("several threads have a scope each of the same pool", "[pools]") {
  PoolRig rig;
  MemPool pool(rig.pools);
  constexpr int kThreads = 4, kRounds = 50;
  std::atomic<int> wrong{0};
  std::vector<void*> kept(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const Stream s = rig.stream();
      for (int round = 0; round < kRounds; ++round) {
        const MemPoolScope scope(pool);
        if (rig.allocator.poolFor(s) != pool.id()) ++wrong;
        rig.temporary(std::size_t(1 + round % 5) * kMiB, s);
      }
      if (rig.allocator.poolFor(s) != MempoolId_t{}) ++wrong;
      const MemPoolScope scope(pool);
      kept[std::size_t(i)] = rig.allocate(kMiB, s);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(pool.useCount() == 1);
  CHECK(rig.holds(pool.id(), {kept.begin(), kept.end()}));
  CHECK(reservedOf(rig.allocator) == rig.reservedBy(pool.id()));
  for (void* block : kept) rig.free(block);
}

TEST_CASE("pools of two allocators do not see each other's scopes", "[pools]") {
  PoolRig one, two;
  const Stream s = one.stream(), t = two.stream();
  MemPool pool(one.pools);
  const MemPoolScope scope(pool);
  CHECK(one.allocator.poolFor(s) == pool.id());
  CHECK(two.allocator.poolFor(t) == MempoolId_t{});
}

}  // namespace cistern::test
