// Names of pools, and verbs that a pool's state does not allow: each is refused by name, and
// changes nothing.
#include <thread>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {

TEST_CASE("names come in two forms, each with a counter of its own that starts at 1", "[pools]") {
  const MempoolId_t user = graphPoolHandle(), capture = graphPoolHandle(false);
  CHECK((user.uuid == 0 && user.uid >= 1));
  CHECK((capture.uuid >= 1 && capture.uid == 0));
  CHECK(graphPoolHandle(true) == MempoolId_t{0, user.uid + 1});
  CHECK(graphPoolHandle(false) == MempoolId_t{capture.uuid + 1, 0});
}

TEST_CASE("a name is no pool until someone uses it", "[pools]") {
  PoolRig rig;
  CHECK(!rig.known(graphPoolHandle()));
  const MemPool user(rig.pools), like_a_graphs(rig.pools, {nullptr, false});
  CHECK(user.id().uuid == 0);
  CHECK(like_a_graphs.id().uid == 0);
}

TEST_CASE("the default pool is not one to create, use or release", "[pools]") {
  PoolRig rig;
  const MempoolId_t none;
  const PoolFilter thread = PoolFilter::thisThread();
  CHECK(refusedFor(none, "default pool", [&] { rig.pools.createOrIncrefPool(none); }));
  CHECK(refusedFor(none, "", [&] { rig.pools.beginAllocateToPool(none, thread); }));
  CHECK(refusedFor(none, "", [&] { rig.pools.releasePool(none); }));
  CHECK(rig.allocator.poolFor(rig.stream()) == none);
}

TEST_CASE("a pool that was never made is refused by every verb but those that make it", "[pools]") {
  PoolRig rig;
  const MempoolId_t id = graphPoolHandle();
  Pools& pools = rig.pools;
  const Stream s = rig.stream();
  CHECK(refusedFor(id, "not there", [&] { pools.releasePool(id); }));
  CHECK(refusedFor(id, "not there", [&] { (void)pools.getPoolUseCount(id); }));
  CHECK(refusedFor(id, "not there", [&] { pools.endAllocateToPool(id); }));
  CHECK(refusedFor(id, "not there", [&] { (void)pools.allocate(kKiB, s, id); }));
  CHECK(refusedFor(id, "not there", [&] { pools.setUseOnOOM(id, true); }));
  CHECK(refusedFor(id, "not there", [&] { pools.setNoSplit(id); }));
  CHECK(refusedFor(id, "not there", [&] { pools.emptyCache(id); }));
  CHECK(refusedFor(id, "not there", [&] { (void)pools.checkPoolLiveAllocations(id, {}); }));
  CHECK(refusedFor(id, "not there", [&] { (void)pools.getCheckpointState(id); }));
  CHECK(refusedFor(id, "not there", [&] { (void)pools.setCheckpointPoolState({id, {}}); }));
  CHECK(refusedFor(id, "not there", [&] { (void)pools.memoryStats(id); }));
  CHECK(!rig.known(id));
  CHECK(reservedOf(rig.allocator) == 0);
}

TEST_CASE("a pool is not released more often than it was taken", "[pools]") {
  PoolRig rig;
  const MempoolId_t id = graphPoolHandle();
  rig.pools.createOrIncrefPool(id);
  rig.pools.createOrIncrefPool(id);
  void* block = rig.pools.allocate(kMiB, rig.stream(), id);
  rig.pools.releasePool(id);
  rig.pools.releasePool(id);
  CHECK(refusedFor(id, "draining", [&] { rig.pools.releasePool(id); }));
  CHECK(rig.pools.getPoolUseCount(id) == 0);
  CHECK(rig.holds(id, {block}));
  rig.free(block);
}

TEST_CASE("a draining pool takes no new user and no new request", "[pools]") {
  PoolRig rig;
  const MempoolId_t id = graphPoolHandle();
  const Stream s = rig.stream();
  rig.pools.createOrIncrefPool(id);
  void* block = rig.pools.allocate(kMiB, s, id);
  rig.pools.releasePool(id);
  const PoolFilter thread = PoolFilter::thisThread();
  Graph graph(rig.pools);
  CHECK(refusedFor(id, "draining", [&] { rig.pools.createOrIncrefPool(id); }));
  CHECK(refusedFor(id, "draining", [&] { rig.pools.beginAllocateToPool(id, thread); }));
  CHECK(refusedFor(id, "draining", [&] { (void)rig.pools.allocate(kMiB, s, id); }));
  CHECK(refusedFor(id, "draining", [&] { rig.pools.setUseOnOOM(id, true); }));
  CHECK(refusedFor(id, "draining", [&] { rig.pools.setNoSplit(id); }));
  CHECK(refusedFor(id, "draining", [&] { graph.captureBegin(s, id); }));
  CHECK(rig.pools.getPoolUseCount(id) == 0);
  CHECK(rig.allocator.poolFor(s) == MempoolId_t{});
  CHECK(rig.holds(id, {block}));
  rig.free(block);
}

TEST_CASE("a thread's scope of a pool begins once and ends on its thread", "[pools]") {
  PoolRig rig;
  const MempoolId_t id = graphPoolHandle();
  const PoolFilter thread = PoolFilter::thisThread();
  const Stream s = rig.stream();
  rig.pools.createOrIncrefPool(id);
  CHECK(refusedFor(id, "no scope", [&] { rig.pools.endAllocateToPool(id); }));
  rig.pools.beginAllocateToPool(id, thread);
  CHECK(refusedFor(id, "already", [&] { rig.pools.beginAllocateToPool(id, thread); }));
  bool elsewhere = false;
  std::thread([&] {
    elsewhere = refusedFor(id, "no scope", [&] { rig.pools.endAllocateToPool(id); });
  }).join();
  CHECK(elsewhere);
  CHECK(rig.pools.getPoolUseCount(id) == 2);
  CHECK(rig.allocator.poolFor(s) == id);
  rig.pools.endAllocateToPool(id);
  CHECK(rig.pools.getPoolUseCount(id) == 2);  // to end is not to let go
  CHECK(rig.allocator.poolFor(s) == MempoolId_t{});
  CHECK(refusedFor(id, "no scope", [&] { rig.pools.endAllocateToPool(id); }));
}

TEST_CASE("a scope by streams begins once, whoever asks, and any thread ends it", "[pools]") {
  PoolRig rig;
  const MempoolId_t id = graphPoolHandle();
  const Stream s = rig.stream(), other = rig.stream();
  rig.pools.beginAllocateToPool(id, PoolFilter::stream(s));
  const auto again = [&] { rig.pools.beginAllocateToPool(id, PoolFilter::stream(other)); };
  CHECK(refusedFor(id, "already", again));
  bool elsewhere = false;
  std::thread([&] { elsewhere = refusedFor(id, "already", again); }).join();
  CHECK(elsewhere);
  CHECK(rig.pools.getPoolUseCount(id) == 1);
  CHECK(rig.allocator.poolFor(s) == id);
  CHECK(rig.allocator.poolFor(other) == MempoolId_t{});
  std::thread([&] { rig.pools.endAllocateToPool(id); }).join();
  CHECK(rig.allocator.poolFor(s) == MempoolId_t{});
}

TEST_CASE("the last user of a pool does not go while a scope of it is active", "[pools]") {
  PoolRig rig;
  const MempoolId_t id = graphPoolHandle();
  rig.pools.beginAllocateToPool(id, PoolFilter::thisThread());
  CHECK(refusedFor(id, "active", [&] { rig.pools.releasePool(id); }));
  CHECK(rig.pools.getPoolUseCount(id) == 1);
  rig.pools.endAllocateToPool(id);
  rig.pools.releasePool(id);
  CHECK(!rig.known(id));
}

}  // namespace cistern::test
