// A pool in use is trimmed and grows again, and does what the default pool does to find memory.
#include "tests/pools/pools_support.hpp"

namespace cistern::test {

TEST_CASE("emptyCache of an idle pool returns all of it, and of no other", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool a(rig.pools), b(rig.pools);
  for (const MempoolId_t id : {a.id(), b.id(), MempoolId_t{}}) {
    const auto in = [&](std::size_t bytes) {
      return id == MempoolId_t{} ? rig.allocate(bytes, s) : rig.pools.allocate(bytes, s, id);
    };
    void *small = in(kKiB), *large = in(40 * kMiB);
    rig.free(small);
    rig.free(large);
  }
  const std::int64_t by_b = rig.reservedBy(b.id()), all = reservedOf(rig.allocator);
  const std::int64_t by_a = rig.reservedBy(a.id());
  a.emptyCache();
  CHECK(rig.reservedBy(a.id()) == 0);
  CHECK(rig.reservedBy(b.id()) == by_b);
  CHECK(reservedOf(rig.allocator) == all - by_a);
  rig.pools.emptyCache({});
  CHECK(rig.reservedBy(b.id()) == by_b);
  CHECK(reservedOf(rig.allocator) == by_b);
  CHECK(takenOf(rig.sim()) == std::uint64_t(by_b));
}

TEST_CASE("emptyUnowned returns what is free in the default pool and in draining ones", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool live(rig.pools);
  rig.free(live.allocate(40 * kMiB, s));
  const std::int64_t by_live = rig.reservedBy(live.id());
  const MempoolId_t gone = graphPoolHandle();
  rig.pools.createOrIncrefPool(gone);
  void* held = rig.pools.allocate(40 * kMiB, s, gone);
  rig.pools.releasePool(gone);
  rig.free(rig.allocate(40 * kMiB, s));
  rig.free(held);
  REQUIRE(reservedOf(rig.allocator) > by_live);
  rig.pools.emptyUnowned();
  CHECK(reservedOf(rig.allocator) == by_live);
  CHECK(rig.reservedBy(live.id()) == by_live);
  CHECK_THROWS_AS(rig.pools.getPoolUseCount(gone), PoolError);
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("emptyUnowned returns what graphs have left, and nothing of one that is there",
          "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  std::vector<std::unique_ptr<Graph>> graphs;
  for (int i = 0; i < 40; ++i) {
    graphs.push_back(std::make_unique<Graph>(rig.pools));
    graphs.back()->captureBegin(s);
    rig.temporary(4 * kMiB, s);
    graphs.back()->captureEnd();
  }
  const std::int64_t all = reservedOf(rig.allocator);
  rig.finish();
  rig.pools.emptyUnowned();
  CHECK(reservedOf(rig.allocator) == all);
  graphs.clear();
  rig.pools.emptyUnowned();
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("emptyCache of a pool in use returns what lies wholly free in it", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  const MemPoolScope scope(pool);
  void* kept = rig.written(40 * kMiB, s);
  rig.temporary(400 * kMiB, s);
  rig.finish();
  pool.emptyCache();
  CHECK(rig.reservedBy(pool.id()) >= mib(40));
  CHECK(rig.reservedBy(pool.id()) <= mib(64));
  rig.touch(s, kept);
  rig.free(kept);
}

TEST_CASE("a pool is trimmed under a live graph, but for what the graph has captured", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools), other(rig.pools);
  rig.free(other.allocate(50 * kMiB, s));
  const std::int64_t by_other = rig.reservedBy(other.id());
  Graph graph(rig.pools);
  graph.captureBegin(s, pool.id());
  rig.temporary(64 * kMiB, s);
  graph.captureEnd();
  const std::int64_t captured = rig.reservedBy(pool.id());
  void* uncaptured = pool.allocate(256 * kMiB, s);
  rig.touch(s, uncaptured);
  rig.free(uncaptured);
  rig.finish();
  CHECK(rig.reservedBy(pool.id()) > captured);
  pool.emptyCache();
  CHECK(rig.reservedBy(pool.id()) == captured);
  CHECK(rig.reservedBy(other.id()) == by_other);
  rig.allocator.emptyCache();
  CHECK(rig.reservedBy(pool.id()) == captured);
  graph.replay(s);
  rig.finish();
  graph.reset();
  pool.emptyCache();
  CHECK(rig.reservedBy(pool.id()) == 0);
}

TEST_CASE("pressure in one pool takes nothing that a graph has captured in another", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  MemPool hungry(rig.pools);
  Graph graph(rig.pools);
  graph.captureBegin(s);
  rig.temporary(500 * kMiB, s);
  graph.captureEnd();
  CHECK_THROWS_AS(hungry.allocate(600 * kMiB, t), OutOfMemory);
  CHECK(rig.outOfMemory(600 * kMiB, t));
  CHECK(rig.outOfMemory(600 * kMiB, s));
  graph.replay(s);
}

TEST_CASE("a pool of 75% of the device, freed, grows to 87% in one block", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  MemPool pool(rig.pools);
  const MemPoolScope scope(pool);
  for (const bool in_one : {true, false}) {
    std::vector<void*> blocks;
    for (std::size_t i = 0; i < (in_one ? 1 : 48); ++i) {
      blocks.push_back(rig.written((in_one ? 768 : 16) * kMiB, i % 2 == 0 ? s : t));
    }
    for (void* block : blocks) rig.free(block);
    rig.finish();
    void* block = rig.written(890 * kMiB, s);
    CHECK(rig.holds(pool.id(), {block}));
    rig.free(block);
  }
}

TEST_CASE("a pool finds memory by callbacks outside of a capture", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  void* cached = pool.allocate(700 * kMiB, s);
  int asked = 0;
  rig.allocator.registerReclaimCallback([&] {
    ++asked;
    if (cached) rig.free(cached);
    return std::exchange(cached, nullptr) != nullptr;
  });
  asked = 0;
  void* block = pool.allocate(700 * kMiB, s);
  CHECK(asked >= 1);
  CHECK(cached == nullptr);
  rig.free(block);
}

TEST_CASE("within a pool completed memory of one stream serves another", "[pools]") {
  PoolRig rig("limit:256M");
  const Stream s = rig.stream(), t = rig.stream();
  MemPool pool(rig.pools);
  const MemPoolScope scope(pool);
  rig.temporary(200 * kMiB, s);
  rig.finish();
  rig.temporary(200 * kMiB, t);
  CHECK(rig.reservedBy(pool.id()) <= mib(256));
}

TEST_CASE("within a pool queued memory of one stream serves another in order, without a wait",
          "[pools]") {
  PoolRig rig("limit:256M", simOf(kGiB, kLongNs));
  const Stream s = rig.stream(), t = rig.stream();
  MemPool pool(rig.pools);
  const MemPoolScope scope(pool);
  rig.temporary(200 * kMiB, s);
  rig.temporary(200 * kMiB, t);
  CHECK((!onPages(rig.allocator) || rig.sim().now() < kLongNs));
}

TEST_CASE("a pool that finds no room has the default pool's cache given back", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  MemPool pool(rig.pools);
  rig.temporary(700 * kMiB, s);
  rig.finish();
  void* block = pool.allocate(700 * kMiB, t);
  rig.touch(t, block);
  rig.free(block);
}

TEST_CASE("a pool waits for pending frees rather than be out of memory", "[pools]") {
  PoolRig rig("", simOf(kGiB, 1'000'000));
  const Stream s = rig.stream(), t = rig.stream();
  MemPool pool(rig.pools);
  const MemPoolScope scope(pool);
  void* block = rig.written(700 * kMiB, s);
  rig.join(t, s);
  rig.read(t, block);
  rig.allocator.recordStream(block, t);
  rig.free(block);
  rig.temporary(700 * kMiB, s);
}

}  // namespace cistern::test
