// A wake makes the room that emptyCache makes: whatever of the device's memory lies free.
#include "tests/pools/overflow_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kAsleep = 24 * kMiB;

/// A pool that sleeps, and room for little else.
struct FullRig : OverflowRig {
  FullRig() : OverflowRig(kGiB, 512 * kMiB, kGiB, 1'000'000), pool(pools), s(stream()) {
    allocator.setLimit(32 * kMiB);
    asleep = pool.allocate(kAsleep, s);
    work.fill(s, toAddress(asleep), kAsleep, 1);
    (void)pools.sleep({pool.id()});
  }
  ~FullRig() { free(asleep); }

  /// Whether the pool wakes, with what it had.
  bool wakes() {
    allocator.audit();
    if (!refusalOf<OutOfMemory>([&] { (void)pools.wake({pool.id()}); }).empty()) return false;
    allocator.audit();
    sim().audit();
    return wrong(asleep, kAsleep, s, 1) == 0;
  }

  MemPool pool;
  Stream s;
  void* asleep = nullptr;
};

}  // namespace

TEST_CASE("a wake takes what threads keep", "[pools][sleep][pages]") {
  FullRig rig;
  rig.free(rig.written(16 * kMiB, rig.s));
  CHECK(rig.wakes());
}

TEST_CASE("a wake takes freed blocks that other streams have used", "[pools][sleep][pages]") {
  FullRig rig;
  const Stream other = rig.stream();
  void* const used = rig.written(20 * kMiB, rig.s);
  rig.join(other, rig.s);
  rig.allocator.recordStream(used, other);
  rig.touch(other, used);
  rig.free(used);
  CHECK(rig.wakes());
}

TEST_CASE("a wake takes what heaps of overflow have of the device",
          "[pools][sleep][overflow][pages]") {
  FullRig rig;
  void* const first = rig.filled(8 * kMiB, rig.s, 2);
  void* const over = rig.filled(32 * kMiB, rig.s, 3);
  REQUIRE(rig.allocator.hostBytesIn(over) == 8 * kMiB);
  rig.free(over);
  rig.finish();
  CHECK(rig.wakes());
  rig.free(first);
}

TEST_CASE("a wake takes what graphs held that were reset", "[pools][sleep][graphs][pages]") {
  FullRig rig;
  MemPool captured(rig.pools);
  Graph graph(rig.pools);
  {
    GraphCapture capture(graph, rig.s, captured.id());
    rig.free(rig.allocate(20 * kMiB, rig.s));
    capture.end();
  }
  graph.replay(rig.s);
  graph.reset();
  CHECK(rig.wakes());
}

TEST_CASE("a wake takes what pools had that have ended", "[pools][sleep][pages]") {
  FullRig rig;
  {
    MemPool ended(rig.pools);
    void* const block = ended.allocate(20 * kMiB, rig.s);
    rig.touch(rig.s, block);
    rig.free(block);
  }
  CHECK(rig.wakes());
}

TEST_CASE("a wake that finds no room changes nothing", "[pools][sleep][pages]") {
  FullRig rig;
  void* const used = rig.filled(20 * kMiB, rig.s, 2);
  CHECK_FALSE(rig.wakes());
  CHECK(rig.pools.isAsleep(rig.pool.id()));
  CHECK(rig.wrong(used, 20 * kMiB, rig.s, 2) == 0);
  rig.free(used);
  CHECK(rig.wakes());
}

}  // namespace cistern::test
