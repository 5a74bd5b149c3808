// Pools that lend to the default pool rather than let it be out of memory.
#include <optional>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kMost = 972 * kMiB;  // 95% of the device

/// Allocates most of the device in the pool and frees it.
void fill(PoolRig& rig, MempoolId_t id, Stream stream) {
  void* block = rig.pools.allocate(kMost, stream, id);
  rig.touch(stream, block);
  rig.free(block);
  rig.finish();
}

}  // namespace

TEST_CASE("a pool with use_on_oom serves the default pool at 95% of the device", "[pools]") {
  for (const bool same_stream : {true, false}) {
    PoolRig rig;
    const Stream s = rig.stream(), t = same_stream ? s : rig.stream();
    MemPool lender(rig.pools, {nullptr, true, true});
    fill(rig, lender.id(), s);
    void* block = rig.written(800 * kMiB, t);
    CHECK(reservedOf(rig.allocator) <= mib(1024));
    rig.free(block);
    rig.finish();
    void* back = lender.allocate(800 * kMiB, s);  // the default pool keeps nothing of it
    rig.touch(s, back);
    rig.free(back);
  }
}

TEST_CASE("a pool without use_on_oom serves others by way of the device alone", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  fill(rig, pool.id(), s);
  rig.pools.setUseOnOOM(pool.id(), true);
  CHECK(!rig.outOfMemory(100 * kMiB, s));
  CHECK(rig.reservedBy(pool.id()) > 0);
  rig.pools.setUseOnOOM(pool.id(), false);
  CHECK(!rig.outOfMemory(800 * kMiB, s));
  CHECK(rig.reservedBy(pool.id()) == 0);
}

TEST_CASE("a lender is asked only when growth is not possible", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool lender(rig.pools, {nullptr, true, true});
  rig.free(lender.allocate(100 * kMiB, s));
  const std::int64_t lent = rig.reservedBy(lender.id());
  void* block = rig.allocate(100 * kMiB, s);
  CHECK(rig.reservedBy(lender.id()) == lent);
  CHECK(reservedOf(rig.allocator) >= mib(200));
  rig.free(block);
}

TEST_CASE("memory that queued work in the lender still uses is not lent", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  MemPool lender(rig.pools, {nullptr, true, true});
  void* block = lender.allocate(kMost, s);
  rig.neverEnd(s);
  rig.touch(s, block);
  rig.free(block);
  CHECK(rig.outOfMemory(800 * kMiB, t));
}

TEST_CASE("a MemPool that is gone lends no parts of its memory any more", "[pools]") {
  PoolRig rig("limit:64M,page_size:2M");
  const Stream s = rig.stream();
  std::optional<MemPool> lender(std::in_place, rig.pools, MemPoolOptions{nullptr, true, true});
  std::vector<void*> held;  // every other one: no page and no segment of them is wholly free
  for (int i = 0; i < 64; ++i) held.push_back(lender->allocate(kMiB, s));
  for (std::size_t i = 0; i < held.size(); i += 2) rig.free(std::exchange(held[i], nullptr));
  void* part = rig.written(kMiB, s);
  CHECK(reservedOf(rig.allocator) == mib(64));
  rig.free(part);
  lender.reset();
  CHECK(rig.outOfMemory(kMiB, s));
  for (void* block : held) rig.free(block);
}

TEST_CASE("a lender never lends what a live graph has captured", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  MemPool lender(rig.pools, {nullptr, true, true});
  Graph graph(rig.pools);
  graph.captureBegin(s, lender.id());
  rig.temporary(kMost, s);
  graph.captureEnd();
  CHECK(rig.outOfMemory(500 * kMiB, t));
  CHECK(rig.outOfMemory(500 * kMiB, s));
  CHECK(rig.outOfMemory(100 * kMiB, s));
  graph.replay(s);
  rig.finish();
  graph.reset();
  CHECK(rig.pools.getPoolUseCount(lender.id()) == 1);
  CHECK(!rig.outOfMemory(500 * kMiB, t));
}

TEST_CASE("private pools borrow neither from each other nor from a lender", "[pools]") {
  for (const bool lends : {false, true}) {
    PoolRig rig;
    const Stream s = rig.stream();
    MemPool owner(rig.pools, {nullptr, true, lends}), other(rig.pools);
    fill(rig, owner.id(), s);
    {
      Graph graph(rig.pools);
      GraphCapture capture(graph, s);
      CHECK(rig.outOfMemory(500 * kMiB, s));
    }
    // Elsewhere it goes back to the device before a request is refused, and all of it.
    rig.free(other.allocate(80 * kMiB, s));
    CHECK(rig.reservedBy(owner.id()) == 0);
  }
}

}  // namespace cistern::test
