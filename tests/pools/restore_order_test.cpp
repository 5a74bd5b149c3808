// Setting a pool back makes blocks of one stream where others have worked since: that work comes
// first, or nothing is set back.
#include <algorithm>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

/// A pool on a small device, and two streams.
struct OrderRig : PoolRig {
  explicit OrderRig(std::string_view conf = "") : PoolRig(conf, simOf(64 * kMiB)), pool(pools) {}
  PoolCheckpoint now() { return pools.getCheckpointState(pool.id()); }
  /// Work of a second that writes all of the block.
  void workLong(Stream on, void* block) {
    const std::uint64_t bytes = allocator.blockSize(block);
    sim()
        .launch(on, {"long", {{toAddress(block), bytes, sim::AccessKind::kWrite}}, kSecond, {}})
        .orThrow();
  }
  bool isSetBack(const PoolCheckpoint& to) {
    const PoolCheckpoint before = now();
    const std::string why = refusalOf<PoolError>([&] { pools.setCheckpointPoolState(to); });
    UNSCOPED_INFO(why);
    CHECK(now().blocks == (why.empty() ? to : before).blocks);
    allocator.audit();
    return why.empty();
  }
  /// Fills the device with blocks of the stream's, and frees one that has no page of its own.
  void* holeAmong(std::vector<void*>& blocks, Stream on, std::size_t bytes) {
    while (!poolIsFull(blocks, on, bytes)) {
    }
    void* const hole = blocks[blocks.size() / 2];
    blocks.erase(blocks.begin() + std::ptrdiff_t(blocks.size() / 2));
    free(hole);
    finish();
    return hole;
  }
  bool poolIsFull(std::vector<void*>& blocks, Stream on, std::size_t bytes) {
    return !refusalOf<OutOfMemory>([&] { blocks.push_back(pool.allocate(bytes, on)); }).empty();
  }
  void freeAll(const std::vector<void*>& blocks) {
    for (void* block : blocks) free(block);
  }

  MemPool pool;
  const Stream s = stream(), t = stream();
};

}  // namespace

TEST_CASE("a block set back where another stream works comes after that work", "[pools]") {
  OrderRig rig;
  void* const block = rig.pool.allocate(32 * kMiB, rig.s);
  const PoolCheckpoint checkpoint = rig.now();
  rig.free(block);
  void* const later = rig.pool.allocate(28 * kMiB, rig.t);
  const bool freed_first = GENERATE(false, true);
  rig.workLong(rig.t, later);
  if (freed_first) rig.free(later);
  REQUIRE(rig.isSetBack(checkpoint));
  rig.touch(rig.s, block);
  rig.free(block);
}

TEST_CASE("a guest set back where the owner of the memory works comes after that work", "[pools]") {
  OrderRig rig("page_size:2M");
  std::vector<void*> blocks;
  (void)rig.holeAmong(blocks, rig.t, 1536 * kKiB);
  void* const guest = rig.pool.allocate(1100 * kKiB, rig.s);
  const PoolCheckpoint checkpoint = rig.now();
  rig.free(guest);
  rig.finish();
  (void)rig.outOfMemory(60 * kMiB, rig.s);  // who looks for memory finds that it is complete
  const std::size_t again = GENERATE(1536 * kKiB, 1100 * kKiB);  // one more, or as large
  void* const own = rig.pool.allocate(again, rig.t);
  REQUIRE(own == guest);
  rig.workLong(rig.t, own);
  REQUIRE(rig.isSetBack(checkpoint));
  rig.touch(rig.s, guest);
  rig.free(guest);
  rig.freeAll(blocks);
}

TEST_CASE("setting back waits for queued work on the device, not on the host", "[pools]") {
  OrderRig rig;
  void* const block = rig.pool.allocate(32 * kMiB, rig.s);
  const PoolCheckpoint checkpoint = rig.now();
  rig.free(block);
  void* const later = rig.pool.allocate(28 * kMiB, rig.t);
  rig.neverEnd(rig.t);
  rig.free(later);
  const std::uint64_t host_waits = waits(rig.sim()), queued = countOf(rig.sim(), Call::kWaitEvent);
  REQUIRE(rig.isSetBack(checkpoint));
  CHECK(waits(rig.sim()) == host_waits);
  CHECK(countOf(rig.sim(), Call::kWaitEvent) > queued);
  rig.free(block);
}

TEST_CASE("a block is not set back for a new stream before that is named", "[pools]") {
  sim::SimConfig config = simOf(64 * kMiB);
  config.reuse_streams = true;
  PoolRig rig("", config);
  MemPool pool(rig.pools);
  const Stream s = rig.stream();
  void* const block = pool.allocate(32 * kMiB, s);
  const PoolCheckpoint checkpoint = rig.pools.getCheckpointState(pool.id());
  rig.work.delay(s, kSecond);
  rig.free(block);
  rig.allocator.forgetStream(s);
  rig.sim().destroyStream(s).orThrow();
  const Stream fresh = rig.stream();
  REQUIRE(fresh == s);
  CHECK_THROWS_AS(rig.pools.setCheckpointPoolState(checkpoint), PoolError);
  rig.free(rig.allocator.allocate(kKiB, fresh));
  (void)rig.pools.setCheckpointPoolState(checkpoint);
  rig.touch(fresh, block);
  rig.free(block);
}

TEST_CASE("a block is not set back for a stream that was forgotten until it is named", "[pools]") {
  OrderRig rig;
  void* const block = rig.pool.allocate(32 * kMiB, rig.s);
  const PoolCheckpoint checkpoint = rig.now();
  rig.free(block);
  rig.allocator.forgetStream(rig.s);
  CHECK_FALSE(rig.isSetBack(checkpoint));
  rig.free(rig.allocator.allocate(kKiB, rig.s));
  REQUIRE(rig.isSetBack(checkpoint));
  rig.workLong(rig.s, block);
  rig.free(block);
  rig.touch(rig.t, rig.pool.allocate(32 * kMiB, rig.t));
}

TEST_CASE("a block of a forgotten stream is refused without a call on it", "[pools]") {
  OrderRig rig;
  void* const block = rig.pool.allocate(32 * kMiB, rig.s);
  void* const kept = rig.pool.allocate(2 * kMiB, rig.s);
  const PoolCheckpoint both = rig.now();
  rig.free(block);
  const PoolCheckpoint one = rig.now();
  rig.finish();
  rig.free(rig.pool.allocate(24 * kMiB, rig.t));
  rig.allocator.forgetStream(rig.s);
  rig.sim().destroyStream(rig.s).orThrow();
  CHECK_FALSE(rig.isSetBack(both));
  CHECK(rig.isSetBack(one));  // it is there still
  CHECK(rig.sim().callsOnDeadStreams() == 0);
  rig.free(kept);
}

TEST_CASE("a block is set back where a stream worked that is forgotten", "[pools]") {
  OrderRig rig;
  void* const block = rig.pool.allocate(32 * kMiB, rig.s);
  const PoolCheckpoint checkpoint = rig.now();
  rig.free(block);
  void* const later = rig.pool.allocate(28 * kMiB, rig.t);
  rig.workLong(rig.t, later);
  const bool freed_first = GENERATE(false, true);
  if (freed_first) rig.free(later);
  rig.allocator.forgetStream(rig.t);
  rig.sim().destroyStream(rig.t).orThrow();
  REQUIRE(rig.isSetBack(checkpoint));
  rig.touch(rig.s, block);
  CHECK(rig.sim().callsOnDeadStreams() == 0);
  rig.free(block);
}

TEST_CASE("a block that has another stream or another size since is set back as it was",
          "[pools]") {
  OrderRig rig;
  void* const block = rig.pool.allocate(5 * kMiB - 100, rig.s);
  const PoolCheckpoint checkpoint = rig.now();
  rig.free(block);
  const bool same_stream = GENERATE(false, true);
  rig.finish();
  void* const other = rig.pool.allocate(5 * kMiB, same_stream ? rig.s : rig.t);
  rig.workLong(same_stream ? rig.s : rig.t, other);
  REQUIRE(rig.isSetBack(checkpoint));
  rig.touch(rig.s, block);
  rig.free(block);
}

TEST_CASE("what the default pool has in a pool that lends is not set back", "[pools]") {
  PoolRig rig("limit:64M,page_size:2M");
  const Stream s = rig.stream();
  const MemPool lender(rig.pools, {nullptr, true, true});
  std::vector<void*> held;  // every other one: no page and no segment of them is wholly free
  for (int i = 0; i < 64; ++i) held.push_back(rig.pools.allocate(kMiB, s, lender.id()));
  const PoolCheckpoint full = rig.pools.getCheckpointState(lender.id());
  for (std::size_t i = 0; i < held.size(); i += 2) rig.free(std::exchange(held[i], nullptr));
  std::erase(held, nullptr);
  const PoolCheckpoint half = rig.pools.getCheckpointState(lender.id());
  void* const guest = rig.written(kMiB, s);
  CHECK(rig.holds(lender.id(), std::set<void*>(held.begin(), held.end())));
  CHECK(rig.pools.getCheckpointState(lender.id()).blocks == half.blocks);
  CHECK(rig.pools.setCheckpointPoolState(half).freed.empty());
  CHECK(refusedFor(lender.id(), "still uses", [&] { rig.pools.setCheckpointPoolState(full); }));
  rig.touch(s, guest);
  rig.free(guest);
  REQUIRE(rig.pools.setCheckpointPoolState(full).made.size() == 32);
  for (const LiveBlock& block : full.blocks) rig.free(toPointer(block.address));
}

TEST_CASE("a checkpoint that no pool can have had is refused", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  void *const a = pool.allocate(3 * kMiB, s), *const b = pool.allocate(3 * kMiB, s);
  const PoolCheckpoint good = rig.pools.getCheckpointState(pool.id());
  std::vector<PoolCheckpoint> bad(8, good);
  std::swap(bad[0].blocks[0], bad[0].blocks[1]);
  bad[1].blocks[1] = bad[1].blocks[0];
  bad[2].blocks[0].bytes += 4 * kMiB;
  bad[3].blocks[0].address += 1;
  bad[4].blocks[0].bytes += 1;
  bad[5].blocks[0].bytes = 0;
  bad[6].blocks[0].requested = bad[6].blocks[0].bytes + 1;
  bad[7].blocks[1].bytes = UINT64_MAX - 511;
  for (const PoolCheckpoint& one : bad) {
    CHECK(refusedFor(pool.id(), "", [&] { rig.pools.setCheckpointPoolState(one); }));
    CHECK(rig.holds(pool.id(), {a, b}));
  }
  rig.free(a);
  rig.free(b);
  for (const PoolCheckpoint& one : bad) {
    CHECK(refusedFor(pool.id(), "", [&] { rig.pools.setCheckpointPoolState(one); }));
    CHECK(rig.holds(pool.id(), {}));
  }
}

}  // namespace cistern::test
