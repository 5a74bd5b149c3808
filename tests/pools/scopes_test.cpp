// Which requests a scope catches: its thread's, or those on its streams; and the innermost scope's.
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include "allocator/base/steps.hpp"
#include "allocator/engine/engine.hpp"
#include "tests/pools/pools_support.hpp"
#include "tests/support/threads.hpp"

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

TEST_CASE("a scope of one stream is found without looking at those of others", "[pools]") {
  PoolRig rig;
  constexpr int kScopes = 200;
  std::vector<Stream> streams;
  std::vector<std::unique_ptr<MemPool>> pools;
  std::vector<std::unique_ptr<MemPoolScope>> scopes;
  for (int i = 0; i < kScopes; ++i) {
    streams.push_back(rig.stream());
    pools.push_back(std::make_unique<MemPool>(rig.pools));
    scopes.push_back(
        std::make_unique<MemPoolScope>(*pools.back(), PoolFilter::stream(streams.back())));
  }
  const std::uint64_t before = steps_searched;
  for (std::size_t i = 0; i < kScopes; ++i)
    CHECK(rig.allocator.poolFor(streams[i]) == pools[i]->id());
  CHECK(rig.allocator.poolFor(rig.stream()) == MempoolId_t{});
  CHECK(steps_searched == before);
  scopes.erase(scopes.begin());
  CHECK(rig.allocator.poolFor(streams[0]) == MempoolId_t{});
  CHECK(rig.allocator.poolFor(streams[1]) == pools[1]->id());
}

TEST_CASE("of scopes of one stream and of several the one that began last catches", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), other = rig.stream();
  MemPool a(rig.pools), b(rig.pools), c(rig.pools);
  const MemPoolScope outer(a, PoolFilter::stream(s));
  auto any = std::make_unique<MemPoolScope>(b, PoolFilter::streams([](Stream) { return true; }));
  CHECK(rig.allocator.poolFor(s) == b.id());
  {
    const MemPoolScope inner(c, PoolFilter::stream(s));
    CHECK(rig.allocator.poolFor(s) == c.id());
    CHECK(rig.allocator.poolFor(other) == b.id());
    any.reset();
    CHECK(rig.allocator.poolFor(s) == c.id());
  }
  CHECK(rig.allocator.poolFor(s) == a.id());
  CHECK(rig.allocator.poolFor(other) == MempoolId_t{});
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
  constexpr int kWorkers = 4, kTimes = 50;
  std::atomic<int> wrong{0};
  std::vector<void*> kept(kWorkers);
  onThreads(kWorkers, [&](std::size_t i) {
    const Stream s = rig.stream();
    for (int round = 0; round < kTimes; ++round) {
      const MemPoolScope scope(pool);
      if (rig.allocator.poolFor(s) != pool.id()) ++wrong;
      rig.temporary(std::size_t(1 + round % 5) * kMiB, s);
    }
    if (rig.allocator.poolFor(s) != MempoolId_t{}) ++wrong;
    const MemPoolScope scope(pool);
    kept[std::size_t(i)] = rig.allocate(kMiB, s);
  });
  CHECK(wrong == 0);
  CHECK(pool.useCount() == 1);
  CHECK(rig.holds(pool.id(), {kept.begin(), kept.end()}));
  CHECK(reservedOf(rig.allocator) == rig.reservedBy(pool.id()));
  for (void* block : kept) rig.free(block);
}

TEST_CASE("a scope that a thread leaves open ends with the thread", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  const MempoolId_t id = graphPoolHandle();
  rig.pools.createOrIncrefPool(id);
  std::thread([&] {
    rig.pools.beginAllocateToPool(id, PoolFilter::thisThread());
    rig.free(rig.allocate(kMiB, s));
    CHECK(rig.reservedBy(id) > 0);
  }).join();
  CHECK(rig.pools.getPoolUseCount(id) == 2);  // of createOrIncrefPool and beginAllocateToPool
  rig.pools.releasePool(id);
  rig.pools.releasePool(id);  // no scope would be left without its pool
  rig.pools.emptyCache(id);
  CHECK(!rig.known(id));
}

TEST_CASE("a scope keeps its pool, whoever else lets go of it", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MempoolId_t id;
  for (const PoolFilter& filter : {PoolFilter::thisThread(), PoolFilter::stream(s)}) {
    {
      MemPool pool(rig.pools);
      id = pool.id();
      rig.pools.beginAllocateToPool(id, filter);
      const std::string text = refusalOf<PoolError>([&] { rig.pools.releasePool(id); });
      CHECK(text.find("one use left to release, for which a scope is active") != std::string::npos);
    }
    MemPool other(rig.pools);
    CHECK(rig.allocator.poolFor(s) == id);
    rig.free(rig.allocate(kMiB, s));
    CHECK(rig.reservedBy(other.id()) == 0);
    rig.pools.endAllocateToPool(id);
    rig.pools.releasePool(id);
    rig.pools.emptyCache(id);
    CHECK(!rig.known(id));
  }
}

TEST_CASE("a scope that has ended with its thread is not asked for any more", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools), other(rig.pools);
  std::thread([&] {
    rig.pools.beginAllocateToPool(pool.id(), PoolFilter::thisThread());
    rig.pools.beginAllocateToPool(other.id(), PoolFilter::thisThread());
  }).join();
  CHECK(rig.allocator.poolFor(s) == MempoolId_t{});
  CHECK(!rig.allocator.engine().pools.routed());
  rig.pools.releasePool(pool.id());
  rig.pools.releasePool(other.id());
}

TEST_CASE("a MemPoolScope that outlives its thread lets go of its pool", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  std::optional<MemPoolScope> scope;
  std::thread([&] {
    scope.emplace(pool);
    CHECK(rig.allocator.poolFor(s) == pool.id());
  }).join();
  CHECK(pool.useCount() == 2);
  const MemPoolScope mine(pool);  // this thread's own is not ended in its place
  scope.reset();
  CHECK(pool.useCount() == 2);
  CHECK(rig.allocator.poolFor(s) == pool.id());
}

TEST_CASE("a scope that lives as long as its thread, in its thread_local storage, ends once",
          "[pools]") {
  PoolRig rig;
  MemPool pool(rig.pools);
  std::thread([&] {
    thread_local std::optional<MemPoolScope> scope;
    scope.emplace(pool);
  }).join();
  CHECK(pool.useCount() == 1);
}

TEST_CASE("a thread may end with scopes of pools that are gone", "[pools]") {
  std::optional<PoolRig> rig(std::in_place);
  const MempoolId_t id = graphPoolHandle();
  std::mutex turn;
  turn.lock();
  std::atomic<bool> begun{false};
  std::thread thread([&] {
    rig->pools.beginAllocateToPool(id, PoolFilter::thisThread());
    begun = true;
    const std::lock_guard<std::mutex> wait(turn);
  });
  while (!begun) std::this_thread::yield();
  rig.reset();
  turn.unlock();
  thread.join();
}

TEST_CASE("threads that end inside of scopes leave none, while others allocate", "[pools]") {
  PoolRig rig;
  MemPool pool(rig.pools);
  constexpr int kWorkers = 4, kTimes = 20;
  onThreads(kWorkers, [&] {
    const Stream s = rig.stream();
    for (int round = 0; round < kTimes; ++round) {
      std::thread([&] {
        rig.pools.beginAllocateToPool(pool.id(), PoolFilter::thisThread());
        rig.temporary(kMiB, s);
      }).join();
      rig.temporary(kMiB, s);
    }
  });
  for (int i = 0; i < kWorkers * kTimes; ++i) rig.pools.releasePool(pool.id());
  CHECK(pool.useCount() == 1);
  CHECK(!rig.allocator.engine().pools.routed());
}

TEST_CASE("pools of two allocators do not see each other's scopes", "[pools]") {
  PoolRig one, two;
  const Stream s = one.stream(), t = two.stream();
  MemPool pool(one.pools);
  const MemPoolScope scope(pool);
  CHECK(one.allocator.poolFor(s) == pool.id());
  CHECK(two.allocator.poolFor(t) == MempoolId_t{});
}

TEST_CASE("a filter without a function is refused", "[pools]") {
  CHECK_THROWS_AS(PoolFilter::streams({}), InvalidArgument);
}

TEST_CASE("a filter is not asked of requests that name their pool, nor of replays", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  Graph graph(rig.pools);
  {
    GraphCapture capture(graph, s);
    rig.temporary(kMiB, s);
    capture.end();
  }
  MemPool caught(rig.pools), named(rig.pools);
  int asked = 0;
  const MemPoolScope scope(caught, PoolFilter::streams([&](Stream) -> bool {
                             ++asked;
                             throw std::runtime_error("a filter of the program's");
                           }));
  rig.free(named.allocate(kKiB, s));
  graph.replay(s);
  CHECK(asked == 0);
  CHECK_THROWS_AS(rig.allocator.allocate(kKiB, s), std::runtime_error);
  CHECK(asked == 1);
}

}  // namespace cistern::test
