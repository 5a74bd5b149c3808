// A pool is set back to the blocks that it held at an earlier moment.
#include <algorithm>
#include <set>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

using BlockSet = std::set<void*>;

BlockSet of(const std::vector<void*>& blocks) { return {blocks.begin(), blocks.end()}; }

bool same(const PoolCheckpoint& a, const PoolCheckpoint& b) {
  return a.id == b.id && std::equal(a.blocks.begin(), a.blocks.end(), b.blocks.begin(),
                                    b.blocks.end(), [](const LiveBlock& x, const LiveBlock& y) {
                                      return x.address == y.address && x.bytes == y.bytes &&
                                             x.requested == y.requested && x.stream == y.stream;
                                    });
}

struct CheckpointRig : PoolRig {
  CheckpointRig() : pool(pools), s(stream()) {}
  PoolCheckpoint now() { return pools.getCheckpointState(pool.id()); }
  void* in(std::size_t bytes) { return pool.allocate(bytes, s); }
  MemPool pool;
  Stream s;
};

}  // namespace

TEST_CASE("a pool set back is what it was, after frees", "[pools]") {
  CheckpointRig rig;
  void *a = rig.in(kKiB), *b = rig.in(3 * kMiB), *c = rig.in(40 * kMiB + 1);
  const PoolCheckpoint checkpoint = rig.now();
  CHECK(checkpoint.blocks.size() == 3);
  rig.free(a);
  rig.free(c);
  const CheckpointDelta delta = rig.pools.setCheckpointPoolState(checkpoint);
  CHECK(delta.freed.empty());
  CHECK(of(delta.made) == BlockSet{a, c});
  CHECK(same(rig.now(), checkpoint));
  CHECK(rig.holds(rig.pool.id(), {a, b, c}));
  for (void* block : {a, b, c}) {
    rig.touch(rig.s, block);
    rig.free(block);
  }
  CHECK(rig.holds(rig.pool.id(), {}));
}

TEST_CASE("a pool set back is what it was, after further allocations", "[pools]") {
  CheckpointRig rig;
  void* a = rig.in(3 * kMiB);
  const PoolCheckpoint checkpoint = rig.now();
  void *b = rig.in(kKiB), *c = rig.in(40 * kMiB);
  const CheckpointDelta delta = rig.pools.setCheckpointPoolState(checkpoint);
  CHECK(of(delta.freed) == BlockSet{b, c});
  CHECK(delta.made.empty());
  CHECK(same(rig.now(), checkpoint));
  CHECK(of({rig.in(kKiB), rig.in(40 * kMiB)}) == BlockSet{b, c});
  rig.touch(rig.s, a);
  rig.allocator.audit();
}

TEST_CASE("setting back to the present changes nothing", "[pools]") {
  CheckpointRig rig;
  void* a = rig.in(3 * kMiB);
  const std::int64_t allocated = rig.allocator.memoryStats()[Stat::kAllocation].allocated;
  const CheckpointDelta delta = rig.pools.setCheckpointPoolState(rig.now());
  CHECK((delta.freed.empty() && delta.made.empty()));
  CHECK(rig.allocator.memoryStats()[Stat::kAllocation].allocated == allocated);
  rig.free(a);
}

TEST_CASE("a pool is set back and forth between two states", "[pools]") {
  CheckpointRig rig;
  // The small one has its page already: none moves between the states, which setting back needs.
  void *both = rig.in(5 * kMiB), *small = rig.in(512), *a = rig.in(7 * kMiB),
       *b = rig.in(30 * kMiB);
  const PoolCheckpoint first = rig.now();
  rig.free(a);
  rig.free(b);
  const BlockSet later{rig.in(3 * kMiB), rig.in(12 * kMiB), rig.in(16 * kMiB), rig.in(512)};
  const PoolCheckpoint second = rig.now();
  rig.touch(rig.s, both);
  for (int round = 0; round < 3; ++round) {
    CheckpointDelta delta = rig.pools.setCheckpointPoolState(first);
    CHECK(of(delta.made) == BlockSet{a, b});
    CHECK(of(delta.freed) == later);
    CHECK(same(rig.now(), first));
    rig.allocator.audit();
    delta = rig.pools.setCheckpointPoolState(second);
    CHECK(of(delta.made) == later);
    CHECK(of(delta.freed) == BlockSet{a, b});
    CHECK(same(rig.now(), second));
    rig.allocator.audit();
  }
  rig.touch(rig.s, both);
  rig.free(both);
  rig.free(small);
}

TEST_CASE("blocks of several streams are set back each on its own", "[pools]") {
  CheckpointRig rig;
  const Stream t = rig.stream();
  void *a = rig.in(3 * kMiB), *b = rig.pool.allocate(3 * kMiB, t);
  const PoolCheckpoint checkpoint = rig.now();
  rig.free(a);
  rig.free(b);
  (void)rig.pools.setCheckpointPoolState(checkpoint);
  CHECK(same(rig.now(), checkpoint));
  rig.free(b);
  CHECK(rig.pool.allocate(3 * kMiB, t) == b);
}

TEST_CASE("a pool with a live graph is set back to after its capture, and the graph runs on",
          "[pools]") {
  CheckpointRig rig;
  Graph graph(rig.pools), next(rig.pools);
  void* output = nullptr;
  {
    GraphCapture capture(graph, rig.s, rig.pool.id());
    rig.temporary(30 * kMiB, rig.s);
    output = rig.written(5 * kMiB, rig.s);
    capture.end();
  }
  const PoolCheckpoint after_first = rig.now();
  graph.replay(rig.s);
  rig.free(output);
  {
    GraphCapture capture(next, rig.s, rig.pool.id());
    rig.temporary(50 * kMiB, rig.s);
    capture.end();
  }
  next.replay(rig.s);
  const CheckpointDelta delta = rig.pools.setCheckpointPoolState(after_first);
  CHECK(delta.made == std::vector<void*>{output});
  CHECK(same(rig.now(), after_first));
  graph.replay(rig.s);
  rig.read(rig.s, output);
  rig.free(output);
}

TEST_CASE("a block whose memory has left the pool is not set back, and nothing is changed",
          "[pools]") {
  CheckpointRig rig;
  void *a = rig.in(3 * kMiB), *gone = rig.in(100 * kMiB);
  const PoolCheckpoint checkpoint = rig.now();
  rig.free(gone);
  rig.pool.emptyCache();
  void* later = rig.in(kKiB);
  const PoolCheckpoint before = rig.now();
  CHECK_THROWS_AS(rig.pools.setCheckpointPoolState(checkpoint), PoolError);
  CHECK(same(rig.now(), before));
  CHECK(rig.holds(rig.pool.id(), {a, later}));
  const std::string text =
      refusalOf<PoolError>([&] { (void)rig.pools.setCheckpointPoolState(checkpoint); });
  INFO(text);
  CHECK(text.find(poolName(rig.pool.id())) != std::string::npos);
  CHECK(text.find("left the pool") != std::string::npos);
}

TEST_CASE("a block that queued work of another stream still uses is not set back", "[pools]") {
  CheckpointRig rig;
  const Stream t = rig.stream();
  void* block = rig.in(3 * kMiB);
  const PoolCheckpoint checkpoint = rig.now();
  rig.neverEnd(t);
  rig.allocator.recordStream(block, t);
  rig.free(block);
  CHECK_THROWS_AS(rig.pools.setCheckpointPoolState(checkpoint), PoolError);
  CHECK(rig.holds(rig.pool.id(), {}));
}

TEST_CASE("checkPoolLiveAllocations tells exactly these from more and from fewer", "[pools]") {
  CheckpointRig rig;
  void *a = rig.in(kKiB), *b = rig.in(3 * kMiB);
  CHECK(rig.holds(rig.pool.id(), {a, b}));
  CHECK(!rig.holds(rig.pool.id(), {a}));
  CHECK(!rig.holds(rig.pool.id(), {a, b, &rig}));
  rig.free(a);
  CHECK(rig.holds(rig.pool.id(), {b}));
  CHECK(!rig.holds(rig.pool.id(), {a, b}));
}

}  // namespace cistern::test
