// Pools in which each block has a segment of its own.
#include <set>

#include "tests/pools/pools_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kNoSplitSizes[] = {kKiB, kKiB, 100 * kKiB, 3 * kMiB, 3 * kMiB, 30 * kMiB};

}  // namespace

TEST_CASE("without splitting each block has a segment of its own", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools, {nullptr, true, false, true});
  std::set<void*> blocks;
  for (const std::size_t bytes : kNoSplitSizes) {
    void* block = pool.allocate(bytes, s);
    const BaseAllocation segment = rig.allocator.getBaseAllocation(block);
    CHECK(segment.base == block);
    CHECK(segment.bytes == roundUp(bytes, 2 * kMiB));
    rig.touch(s, block);
    blocks.insert(block);
  }
  CHECK(rig.holds(pool.id(), blocks));
  CHECK(rig.pools.memoryStats(pool.id())[std::size_t(Stat::kSegment)].current ==
        std::int64_t(std::size(kNoSplitSizes)));
  for (void* block : blocks) rig.free(block);
  void* again = pool.allocate(3 * kMiB, s);
  CHECK(blocks.contains(again));
  CHECK(rig.allocator.getBaseAllocation(again).base == again);
  rig.free(again);
  pool.emptyCache();
  CHECK(rig.reservedBy(pool.id()) == 0);
}

TEST_CASE("without splitting a block is aligned as its segment is", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools, {nullptr, true, false, true});
  int aligned = 0;
  for (int i = 0; i < 8; ++i) {
    try {
      void* const block = pool.allocate(3 * kMiB, s, kMostAlignment);
      CHECK((toAddress(block) & (kMostAlignment - 1)) == 0);
      CHECK(rig.allocator.getBaseAllocation(block).base == block);
      ++aligned;
    } catch (const InvalidArgument& error) {
      CHECK_THAT(error.what(),
                 Catch::Matchers::ContainsSubstring("which is not aligned to 2097152"));
    }
  }
  CHECK(aligned > 0);
  CHECK(rig.pools.memoryStats(pool.id())[std::size_t(Stat::kAllocation)].current == aligned);
}

TEST_CASE("without splitting a pool waits for queued work as any does", "[pools]") {
  PoolRig rig("limit:64MiB,background_thread:false");
  const Stream first = rig.stream(), second = rig.stream();
  MemPool pool(rig.pools, {nullptr, true, false, true});
  void* block = rig.allocator.allocate(50 * kMiB, first);
  rig.touch(first, block);
  rig.allocator.free(block);
  CHECK_NOTHROW(rig.free(pool.allocate(40 * kMiB, second)));
}

TEST_CASE("setNoSplit makes a pool without memory one that does not split", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  rig.pools.setNoSplit(pool.id());
  void *one = pool.allocate(kKiB, s), *two = pool.allocate(kKiB, s);
  CHECK(rig.allocator.getBaseAllocation(one).base == one);
  CHECK(rig.allocator.getBaseAllocation(two).base == two);
  rig.free(one);
  rig.free(two);
}

TEST_CASE("setNoSplit of a pool that has memory is an error that changes nothing", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  void* one = pool.allocate(kKiB, s);
  CHECK(refusedFor(pool.id(), "has memory", [&] { rig.pools.setNoSplit(pool.id()); }));
  void* two = pool.allocate(kKiB, s);
  CHECK(toAddress(two) == toAddress(one) + kKiB);
  rig.free(one);
  rig.free(two);
}

TEST_CASE("a graph captures into a pool that does not split", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools, {nullptr, true, false, true});
  Graph graph(rig.pools);
  graph.captureBegin(s, pool.id());
  const void* first = rig.temporary(3 * kMiB, s);
  CHECK(rig.temporary(3 * kMiB, s) == first);
  graph.captureEnd();
  pool.emptyCache();
  graph.replay(s);
  rig.finish();
}

TEST_CASE("garbage is collected beside a pool of whole segments", "[pools]") {
  PoolRig rig("limit:256M,garbage_collection_threshold:0.4");
  const Stream s = rig.stream();
  MemPool pool(rig.pools, {nullptr, true, false, true});
  rig.free(pool.allocate(30 * kMiB, s));
  void* held = rig.written(60 * kMiB, s);
  rig.temporary(80 * kMiB, s);
  rig.finish();
  const bool pages = onPages(rig.allocator);
  void* more = rig.written(100 * kMiB, s);  // free pages go first, or what was idle for longest
  CHECK((countOf(rig.sim(), Call::kReleasePage) > 0) == pages);
  CHECK(rig.reservedBy(pool.id()) == (pages ? mib(30) : 0));
  void* last = rig.written(20 * kMiB, s);  // no page is free: the pool's segment goes
  CHECK(rig.reservedBy(pool.id()) == 0);
  CHECK(reservedOf(rig.allocator) == mib(pages ? 60 + 100 + 20 : 60 + 80 + 100));
  for (void* block : {held, more, last}) rig.free(block);
}

TEST_CASE("a pool of whole segments has others' free memory given back to make room", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools, {nullptr, true, false, true});
  rig.temporary(700 * kMiB, s);
  rig.finish();
  void* block = pool.allocate(700 * kMiB, s);
  rig.touch(s, block);
  rig.free(block);
}

TEST_CASE("the segments of a draining pool are given back to make room", "[pools]") {
  PoolRig rig;
  const Stream s = rig.stream();
  const MempoolId_t id = graphPoolHandle();
  rig.pools.createOrIncrefPool(id, {nullptr, true});
  void* block = rig.pools.allocate(700 * kMiB, s, id);
  rig.pools.releasePool(id);
  rig.free(block);
  rig.temporary(700 * kMiB, s);
}

TEST_CASE("segments and pages do not get in each other's way, whichever are preferred", "[pools]") {
  PoolRig rig("prefer_old_segments:false");
  const Stream s = rig.stream();
  MemPool pool(rig.pools, {nullptr, true, false, true});
  void* first = pool.allocate(8 * kMiB, s);
  void* other = rig.allocate(kMiB + 1, s);
  for (int i = 0; i < 600; ++i) {
    void* block = pool.allocate(8 * kMiB, s);
    REQUIRE(rig.allocator.getBaseAllocation(block).base == block);
    REQUIRE(rig.allocator.getBaseAllocation(first).base == first);
    rig.free(block);
    pool.emptyCache();
  }
  rig.free(first);
  rig.free(other);
}

}  // namespace cistern::test
