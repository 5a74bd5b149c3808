// A limit for one pool: Pools::setLimit.
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {

TEST_CASE("a pool's limit refuses what goes beyond, and the refusal names the pool", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools, {.limit = 10 * kMiB});
  void* const held = pool.allocate(6 * kMiB, s);
  try {
    (void)pool.allocate(5 * kMiB, s);
    FAIL("not refused");
  } catch (const OutOfMemory& refused) {
    const OutOfMemoryReport& report = refused.report();
    CHECK(report.pool == pool.id());
    CHECK(report.pool_limit == 10 * kMiB);
    CHECK(report.pool_in_use == 6 * kMiB);
    CHECK(report.advice().find("Pool {0, ") != std::string::npos);
    CHECK(report.advice().find("a limit higher by 1.00 MiB") != std::string::npos);
  }
  CHECK(rig.allocator.memoryStats().num_ooms == 1);
  rig.free(pool.allocate(4 * kMiB, s));
  rig.temporary(500 * kMiB, s);  // the default pool's
  rig.free(held);
  rig.free(pool.allocate(10 * kMiB, s));
  rig.pools.setLimit(pool.id(), UINT64_MAX);
  rig.free(pool.allocate(100 * kMiB, s));
  CHECK_THROWS_AS(rig.pools.setLimit({}, kMiB), PoolError);
}

TEST_CASE("a limit holds for scopes, captures and alignments", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools, {.limit = 10 * kMiB});
  {
    const MemPoolScope scope(pool);
    rig.free(rig.allocate(8 * kMiB, s));
    CHECK(rig.outOfMemory(11 * kMiB, s));
  }
  CHECK_THROWS_AS(pool.allocate(11 * kMiB, s, 4096), OutOfMemory);
  rig.finish();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s, pool.id());
  void* const captured = rig.written(8 * kMiB, s);
  CHECK_THROWS_AS(rig.allocate(8 * kMiB, s), OutOfMemory);
  rig.free(captured);
  capture.end();
}

// What was freed waits for another stream's work, and is in use until then.
TEST_CASE("a request at the limit waits for queued work, and asks the program", "[pools]") {
  PoolRig rig("", simOf(kGiB, 1'000'000));
  const Stream s = rig.stream(), t = rig.stream();
  MemPool pool(rig.pools, {.limit = 10 * kMiB});
  void* const used = pool.allocate(8 * kMiB, s);
  rig.allocator.recordStream(used, t);
  rig.touch(t, used);
  rig.free(used);
  void* kept = pool.allocate(9 * kMiB, s);
  int asked = 0;
  rig.allocator.registerReclaimCallback([&] {
    ++asked;
    if (kept == nullptr) return true;  // although nothing has changed
    rig.free(kept);
    kept = nullptr;
    return true;
  });
  void* const next = pool.allocate(7 * kMiB, s);
  CHECK(asked == 1);
  CHECK(kept == nullptr);
  CHECK_THROWS_AS(pool.allocate(7 * kMiB, s), OutOfMemory);
  CHECK(asked == 2);
  rig.free(next);
}

TEST_CASE("the limit counts aligned requests of pools that do not split", "[pools]") {
  for (const bool one_handle : {false, true}) {
    PoolRig rig;
    const Stream s = rig.stream();
    MemPool pool(rig.pools,
                 {.no_split = !one_handle, .one_handle = one_handle, .limit = 10 * kMiB});
    rig.free(pool.allocate(6 * kMiB, s));
    void* const held = pool.allocate(8 * kMiB, s);
    CHECK_THROWS_AS(pool.allocate(6 * kMiB, s, 4096), OutOfMemory);
    rig.free(held);
  }
}

TEST_CASE("what a callback frees is waited for", "[pools]") {
  PoolRig rig("", simOf(kGiB, 1'000'000));
  const Stream s = rig.stream(), t = rig.stream();
  MemPool pool(rig.pools, {.limit = 10 * kMiB});
  void* kept = pool.allocate(8 * kMiB, s);
  rig.allocator.recordStream(kept, t);
  rig.touch(t, kept);
  rig.allocator.registerReclaimCallback([&] {
    if (kept != nullptr) rig.free(std::exchange(kept, nullptr));
    return true;
  });
  rig.free(pool.allocate(8 * kMiB, s));
}

// The free block serves whole: the request counts with its own size.
TEST_CASE("a larger free block serves a request within the limit", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools, {.no_split = true});
  rig.free(pool.allocate(20 * kMiB, s));
  rig.pools.setLimit(pool.id(), 10 * kMiB);
  void* const served = pool.allocate(2 * kMiB, s);
  CHECK_THROWS_AS(pool.allocate(2 * kMiB, s), OutOfMemory);
  rig.free(served);
  CHECK(rig.allocator.memoryStats().num_ooms == 1);
}

TEST_CASE("threads never hold more than a pool's limit", "[pools][threads]") {
  PoolRig rig;
  MemPool pool(rig.pools, {.limit = 20 * kMiB});
  std::atomic<std::int64_t> held{0}, beyond{0}, served{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const Stream s = rig.stream();
      for (int round = 0; round < 300; ++round) {
        try {
          void* const block = pool.allocate(6 * kMiB, s);
          if (held += 6; held > 20) ++beyond;
          ++served;
          std::this_thread::yield();
          held -= 6;
          rig.free(block);
        } catch (const OutOfMemory&) {
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(beyond == 0);
  CHECK(served > 0);
}

}  // namespace cistern::test
