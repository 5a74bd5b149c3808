// What sleep and wake are asked for that cannot be, or that others are in the way of.
#include <utility>
#include <vector>

#include "tests/pools/sleep_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kLimitBytes = 24 * kMiB;

}  // namespace

TEST_CASE("a wake keeps to the limit, and fits when that is raised", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.filled(kLimitBytes, 1);
  (void)rig.pools.sleep({rig.id()});
  rig.allocator.setLimit(8 * kMiB);
  bool thrown = false;
  try {
    (void)rig.pools.wake({rig.id()});
  } catch (const OutOfMemory& error) {
    thrown = true;
    CHECK(error.report().limit == 8 * kMiB);
    CHECK(error.report().pool == rig.id());
  }
  CHECK(thrown);
  CHECK(rig.pools.isAsleep(rig.id()));
  CHECK(rig.taken() == 0);
  rig.audit();
  rig.allocator.setLimit(UINT64_MAX);
  (void)rig.pools.wake({rig.id()});
  CHECK(rig.wrong(block, kLimitBytes, 1) == 0);
  rig.free(block);
}

TEST_CASE("one allocator's sleep is room for another on the device", "[pools][sleep][pages]") {
  SimWork work(simOf(64 * kMiB));
  CachingAllocator one(work.sim()), two(work.sim());
  Pools pools(one), others(two);
  const Stream s = work.sim().createStream().orThrow();
  MemPool pool(pools), other(others);
  void* const a = pool.allocate(40 * kMiB, s);
  work.fill(s, toAddress(a), 40 * kMiB, 1);
  CHECK_THROWS_AS(other.allocate(40 * kMiB, s), OutOfMemory);
  (void)pools.sleep({pool.id()});
  void* const b = other.allocate(40 * kMiB, s);
  work.fill(s, toAddress(b), 40 * kMiB, 2);
  CHECK_THROWS_AS(pools.wake({pool.id()}), OutOfMemory);
  CHECK(pools.isAsleep(pool.id()));
  (void)others.sleep({other.id()});
  (void)pools.wake({pool.id()});
  work.verify(s, toAddress(a), 40 * kMiB, 1);
  (void)pools.sleep({pool.id()});
  (void)others.wake({other.id()});
  work.verify(s, toAddress(b), 40 * kMiB, 2);
  CHECK(work.mismatches() == 0);
  CHECK(work.sim().races().empty());
  one.free(a);
  two.free(b);
}

TEST_CASE("a pool sleeps while a capture into another pool is under way", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.filled(kLimitBytes, 1);
  MemPool captured(rig.pools);
  Graph graph(rig.pools);
  const Stream capturing = rig.stream();
  {
    GraphCapture capture(graph, capturing, captured.id());
    rig.free(rig.allocate(kMiB, capturing));
    (void)rig.pools.sleep({rig.id()}, rig.s);
    CHECK(rig.pools.isAsleep(rig.id()));
    (void)rig.pools.wake({rig.id()});
    capture.end();
  }
  graph.replay(capturing);
  rig.finish();
  CHECK(rig.wrong(block, kLimitBytes, 1) == 0);
  rig.free(block);
}

TEST_CASE("the device cannot be waited for during a capture, which stays valid",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.filled(kLimitBytes, 1);
  MemPool captured(rig.pools);
  Graph graph(rig.pools);
  const Stream capturing = rig.stream();
  GraphCapture capture(graph, capturing, captured.id());
  rig.free(rig.allocate(kMiB, capturing));
  CHECK(refusalOf<DeviceFailure>([&] {
          (void)rig.pools.sleep({rig.id()});
        }).find("a capture is active") != std::string::npos);
  CHECK_FALSE(rig.pools.isAsleep(rig.id()));
  capture.end();
  graph.replay(capturing);
  rig.finish();
  CHECK(rig.wrong(block, kLimitBytes, 1) == 0);
  rig.free(block);
}

TEST_CASE("a sleep after a stream that is captured, or gone, is refused", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.filled(kLimitBytes, 1);
  const Stream captured = rig.stream();
  rig.sim().beginCapture(captured, CaptureMode::kRelaxed).orThrow();
  CHECK(refusalOf<InvalidArgument>([&] {
          (void)rig.pools.sleep({rig.id()}, captured);
        }).find("is being captured") != std::string::npos);
  CHECK_FALSE(rig.pools.isAsleep(rig.id()));
  rig.sim().destroyGraph(rig.sim().endCapture(captured).orThrow()).orThrow();
  const Stream gone = rig.stream();
  rig.sim().destroyStream(gone).orThrow();
  CHECK_THROWS_AS(rig.pools.sleep({rig.id()}, gone), InvalidArgument);
  CHECK_FALSE(rig.pools.isAsleep(rig.id()));
  CHECK(rig.wrong(block, kLimitBytes, 1) == 0);
  rig.free(block);
}

TEST_CASE("if one of several pools cannot sleep, none does", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.filled(kLimitBytes, 1);
  MemPoolOptions options;
  options.no_split = true;
  MemPool whole(rig.pools, options);
  CHECK_THROWS_AS(rig.pools.sleep({rig.id(), whole.id()}), PoolError);
  CHECK_FALSE(rig.pools.isAsleep(rig.id()));
  CHECK_THROWS_AS(rig.pools.sleep({rig.id(), {0, 1'000'000'999}}), PoolError);
  CHECK_FALSE(rig.pools.isAsleep(rig.id()));
  (void)rig.pools.sleep({});
  (void)rig.pools.wake({});
  (void)rig.pools.sleep({rig.id()});
  CHECK_THROWS_AS(rig.pools.wake({rig.id(), {0, 1'000'000'999}}), PoolError);
  CHECK(rig.pools.isAsleep(rig.id()));
  (void)rig.pools.wake({rig.id(), MempoolId_t{}});
  CHECK(rig.wrong(block, kLimitBytes, 1) == 0);
  rig.free(block);
}

TEST_CASE("what was said of a block's contents ends with its free", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const first = rig.filled(kLimitBytes, 1);
  rig.pools.setContents(first, Contents::kZero);
  rig.free(first);
  void* const second = rig.filled(kLimitBytes, 2);
  CHECK(second == first);
  (void)rig.pools.sleep({rig.id()});
  rig.pools.setContents(second, Contents::kZero);  // for the next sleep
  (void)rig.pools.wake({rig.id()});
  CHECK(rig.wrong(second, kLimitBytes, 2) == 0);
  (void)rig.pools.sleep({rig.id()});
  rig.free(second);  // a hole
  (void)rig.pools.wake({rig.id()});
  void* const third = rig.filled(kLimitBytes, 3);
  (void)rig.pools.sleep({rig.id()});
  (void)rig.pools.wake({rig.id()});
  CHECK(rig.wrong(third, kLimitBytes, 3) == 0);
  rig.free(third);
}

// The other stream's work is queued before the sleep; the free comes while the pool sleeps.
TEST_CASE("a block that other streams have used may be freed while its pool sleeps",
          "[pools][sleep][pages]") {
  SleepRig rig(simOf(kGiB, 1'000'000));
  const Stream other = rig.stream();
  void* const used = rig.filled(kLimitBytes, 1);
  void* const kept = rig.filled(kLimitBytes, 2);
  rig.join(other, rig.s);
  rig.allocator.recordStream(used, other);
  rig.touch(other, used);
  (void)rig.pools.sleep({rig.id()});
  rig.free(used);
  rig.audit();
  (void)rig.pools.wake({rig.id()});
  rig.audit();
  rig.finish();
  CHECK(rig.wrong(kept, kLimitBytes, 2) == 0);
  void* const again = rig.filled(kLimitBytes, 3);
  CHECK(rig.wrong(again, kLimitBytes, 3) == 0);
  rig.free(again);
  rig.free(kept);
  rig.finish();
  rig.pool.emptyCache();
  CHECK(rig.taken() == 0);
}

TEST_CASE("a pool without memory sleeps, refuses requests, and wakes", "[pools][sleep][pages]") {
  SleepRig rig;
  CHECK(rig.pools.sleep({rig.id()}).released == 0);
  CHECK(rig.pools.isAsleep(rig.id()));
  CHECK(refusedFor(rig.id(), "asleep", [&] { (void)rig.pool.allocate(kMiB, rig.s); }));
  CHECK(rig.pools.wake({rig.id()}).mapped == 0);
  rig.free(rig.pool.allocate(kMiB, rig.s));
}

}  // namespace cistern::test
