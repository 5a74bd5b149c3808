// Overflow: what the device has no room for lies in host memory, and nothing else does.
#include "tests/pools/overflow_support.hpp"

namespace cistern::test {

TEST_CASE("a request beyond the device is served in host memory", "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* const first = rig.filled(60 * kMiB, s, 1);
  void* const second = rig.filled(30 * kMiB, s, 2);
  CHECK(rig.onDevice(first));
  CHECK(rig.onHost(second));
  CHECK(rig.inHostNow() >= 30 * kMiB);
  CHECK(rig.wrong(first, 60 * kMiB, s, 1) == 0);
  CHECK(rig.wrong(second, 30 * kMiB, s, 2) == 0);
  rig.free(first);
  rig.free(second);
}

TEST_CASE("without overflow, or once it is off, the same request is out of memory",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* const first = rig.allocate(60 * kMiB, s);
  rig.allocator.setOverflow(0);
  CHECK(rig.outOfMemory(30 * kMiB, s));
  CHECK(rig.inHostNow() == 0);
  rig.allocator.setOverflow(64 * kMiB);
  CHECK_FALSE(rig.outOfMemory(30 * kMiB, s));
  rig.allocator.setOverflow(0);  // what lies free there serves nobody now
  CHECK(rig.outOfMemory(30 * kMiB, s));
  rig.free(first);
}

TEST_CASE("the device's free memory comes first, and then what lies free on the host",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* const first = rig.allocate(60 * kMiB, s);
  void* const second = rig.allocate(30 * kMiB, s);
  const std::uint64_t in_host = rig.inHostNow();
  rig.free(second);
  rig.free(first);
  void* const third = rig.allocate(50 * kMiB, s);
  void* const fourth = rig.allocate(20 * kMiB, s);
  CHECK(rig.onDevice(third));
  CHECK(rig.onHost(fourth));
  CHECK(rig.inHostNow() == in_host);  // no page was made
  rig.free(third);
  rig.free(fourth);
  rig.allocator.emptyCache();
  CHECK(rig.inHostNow() == 0);
}

TEST_CASE("free host memory comes before a wait for another stream", "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream(), t = rig.stream();
  void* const used = rig.allocate(50 * kMiB, s);
  void* const over = rig.allocate(30 * kMiB, s);
  rig.free(over);
  rig.allocator.recordStream(used, t);
  rig.neverEnd(t);
  rig.free(used);  // but t may use it for ever
  void* const next = rig.allocate(20 * kMiB, s);
  CHECK(rig.onHost(next));
  rig.free(next);
  rig.sim().destroyStream(t).orThrow();
}

TEST_CASE("host memory is made only after callbacks had nothing to give up",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* held = rig.allocate(60 * kMiB, s);
  int asked = 0;
  const HookId hook = rig.allocator.registerReclaimCallback([&](const MemoryShortage&) {
    ++asked;
    if (held == nullptr) return false;
    rig.free(std::exchange(held, nullptr));
    return true;
  });
  void* const next = rig.allocate(50 * kMiB, s);
  CHECK(rig.onDevice(next));
  CHECK(asked == 1);
  void* const over = rig.allocate(30 * kMiB, s);
  CHECK(rig.onHost(over));
  CHECK(asked == 2);
  rig.free(next);
  rig.free(over);
  rig.allocator.detach(hook);
}

TEST_CASE("a block larger than the device lies in host memory", "[pools][overflow][pages]") {
  OverflowRig rig(64 * kMiB, 400 * kMiB);
  const Stream s = rig.stream();
  void* const block = rig.filled(300 * kMiB, s, 3);
  CHECK(rig.onHost(block));
  CHECK(rig.wrong(block, 300 * kMiB, s, 3) == 0);
  rig.free(block);
  CHECK(rig.outOfMemory(500 * kMiB, s));
}

TEST_CASE("no more lies in host memory than was allowed, and than the host admits",
          "[pools][overflow][pages]") {
  OverflowRig rig(64 * kMiB, 100 * kMiB, 200 * kMiB);
  const Stream s = rig.stream();
  void* const first = rig.allocate(60 * kMiB, s);
  void* const second = rig.allocate(90 * kMiB, s);
  CHECK(rig.outOfMemory(20 * kMiB, s));
  CHECK(rig.inHostNow() <= 100 * kMiB);
  const std::string refused =
      refusalOf<InvalidArgument>([&] { rig.allocator.setOverflow(500 * kMiB); });
  CHECK(refused.find("setOverflow: 500.00 MiB are more than the 200.00 MiB") != std::string::npos);
  CHECK(rig.allocator.overflow().host_bytes == 100 * kMiB);
  rig.allocator.setOverflow(200 * kMiB);
  CHECK_FALSE(rig.outOfMemory(20 * kMiB, s));
  rig.free(first);
  rig.free(second);
}

TEST_CASE("a device without host pages refuses overflow by name", "[pools][overflow]") {
  PoolRig rig("backing:segments");
  const std::string refused = refusalOf<InvalidArgument>([&] { rig.allocator.setOverflow(kMiB); });
  CHECK(refused.find("has no pages of host memory") != std::string::npos);
  rig.allocator.setOverflow(0);
  CHECK(rig.allocator.overflow().text() == "overflow: off\n");
}

TEST_CASE("the option sets overflow", "[pools][overflow][pages]") {
  PoolRig rig("overflow:64MiB", overflowing(64 * kMiB, kGiB));
  CHECK(rig.allocator.overflow().host_bytes == 64 * kMiB);
  CHECK_THROWS_AS(PoolRig("overflow:2GiB", overflowing(64 * kMiB, kGiB)), InvalidArgument);
}

TEST_CASE("the report names the blocks, and a limit that would have done",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  CHECK(rig.allocator.overflow().text().find("the device had room") != std::string::npos);
  void* const first = rig.allocate(60 * kMiB, s);
  void* const small = rig.allocate(10 * kMiB, s);
  void* const large = rig.allocate(30 * kMiB, s);
  const OverflowReport report = rig.allocator.overflow();
  REQUIRE(report.blocks.size() == 2);
  CHECK(report.blocks[0].address == large);
  CHECK(report.blocks[0].bytes == 30 * kMiB);
  CHECK(report.blocks[1].address == small);
  CHECK(report.handed_out == 40 * kMiB);
  CHECK(report.reserved == rig.inHostNow());
  CHECK(report.would_do >= 100 * kMiB);
  CHECK(report.would_do <= 112 * kMiB);
  CHECK(report.text().find("30.00 MiB of pool {0, 0}") != std::string::npos);
  for (void* block : {first, small, large}) rig.free(block);
}

TEST_CASE("statistics and snapshots count host memory of overflow apart",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* const first = rig.allocate(60 * kMiB, s);
  void* const over = rig.allocate(30 * kMiB, s);
  const MemoryStats stats = rig.allocator.memoryStats();
  CHECK(stats.host_page_bytes == rig.inHostNow());
  CHECK(stats.host_page_allocated_bytes == 30 * kMiB);
  CHECK(stats[Stat::kAllocatedBytes].current == std::int64_t(90 * kMiB));
  CHECK(std::uint64_t(stats[Stat::kReservedBytes].current) == takenOf(rig.sim()));
  std::size_t host = 0;
  for (const SnapshotSegment& segment : rig.allocator.snapshot().segments)
    host += segment.location == Location::kHost ? 1 : 0;
  CHECK(host == 1);
  rig.free(first);
  rig.free(over);
}

// ---- Pools, graphs, exports, sleep --------------------------------------------------------------

TEST_CASE("a private pool overflows, and keeps that memory to itself", "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools), other(rig.pools);
  void* const first = rig.allocate(60 * kMiB, s);
  void* const over = pool.allocate(20 * kMiB, s);
  CHECK(rig.onHost(over));
  CHECK(rig.reservedBy(pool.id()) >= std::int64_t(20 * kMiB));
  rig.free(over);
  const std::uint64_t in_host = rig.inHostNow();
  void* const another = other.allocate(10 * kMiB, s);
  CHECK(rig.onHost(another));
  CHECK(rig.inHostNow() > in_host);
  rig.free(another);
  pool.emptyCache();
  other.emptyCache();
  CHECK(rig.inHostNow() == 0);
  rig.free(first);
}

TEST_CASE("blocks of a pool that goes stay, and then serve others", "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* const first = rig.allocate(60 * kMiB, s);
  void* over = nullptr;
  {
    MemPool pool(rig.pools);
    over = pool.allocate(20 * kMiB, s);
    rig.work.fill(s, toAddress(over), 20 * kMiB, 4);
  }
  CHECK(rig.wrong(over, 20 * kMiB, s, 4) == 0);
  rig.free(over);
  const std::uint64_t in_host = rig.inHostNow();
  void* const next = rig.allocate(20 * kMiB, s);
  CHECK(rig.onHost(next));
  CHECK(rig.inHostNow() == in_host);
  rig.free(next);
  rig.free(first);
}

TEST_CASE("a capture overflows, and its replays find its memory", "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* const first = rig.allocate(56 * kMiB, s);
  Graph graph(rig.pools);
  void* result = nullptr;
  {
    GraphCapture capture(graph, s);
    void* const passing = rig.allocate(20 * kMiB, s);
    rig.work.fill(s, toAddress(passing), 20 * kMiB, 5);
    rig.free(passing);
    result = rig.allocate(10 * kMiB, s);
    rig.work.fill(s, toAddress(result), 10 * kMiB, 6);
    capture.end();
  }
  CHECK(rig.onHost(result));
  for (int i = 0; i < 3; ++i) {
    void* const between = rig.filled(6 * kMiB, s, 7);
    graph.replay(s);
    CHECK(rig.wrong(result, 10 * kMiB, s, 6) == 0);
    CHECK(rig.wrong(between, 6 * kMiB, s, 7) == 0);
    rig.free(between);
  }
  rig.free(result);
  graph.reset();
  rig.free(first);
}

TEST_CASE("a block in host memory is not exported, by name", "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  void* const first = rig.allocate(60 * kMiB, s);
  void* const over = rig.allocate(30 * kMiB, s);
  const std::string refused = refusalOf<PoolError>([&] { (void)rig.allocator.exportBlock(over); });
  CHECK(refused.find("host memory") != std::string::npos);
  rig.free(first);
  rig.free(over);
}

TEST_CASE("what lies on the host stays there while its pool sleeps", "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools);
  void* const here = pool.allocate(60 * kMiB, s);
  void* const over = pool.allocate(20 * kMiB, s);
  rig.work.fill(s, toAddress(here), 60 * kMiB, 8);
  rig.work.fill(s, toAddress(over), 20 * kMiB, 9);
  const SleepReport report = rig.pools.sleep({pool.id()});
  CHECK(report.stayed >= 20 * kMiB);
  REQUIRE_FALSE(report.why.empty());
  CHECK(report.why[0].why == WhyStayed::kOnHost);
  CHECK(takenOf(rig.sim()) == 0);
  void* const between = rig.filled(40 * kMiB, s, 10);
  CHECK(rig.onDevice(between));
  rig.free(between);
  rig.allocator.emptyCache();
  (void)rig.pools.wake({pool.id()});
  CHECK(rig.wrong(here, 60 * kMiB, s, 8) == 0);
  CHECK(rig.wrong(over, 20 * kMiB, s, 9) == 0);
  rig.free(here);
  rig.free(over);
}

TEST_CASE("threads, streams that end and caches keep host memory apart",
          "[pools][overflow][pages]") {
  OverflowRig rig;
  void* first = nullptr;
  {
    const Stream s = rig.stream();
    first = rig.allocate(60 * kMiB, s);
    for (int i = 0; i < 20; ++i) {
      void* const over = rig.allocate(20 * kMiB, s);
      void* const small = rig.allocate(1000, s);
      CHECK(rig.onHost(over));
      rig.free(small);
      rig.free(over);
    }
    rig.finish();
    rig.allocator.forgetStream(s);
    rig.sim().destroyStream(s).orThrow();
  }
  const Stream next = rig.stream();
  const std::uint64_t in_host = rig.inHostNow();
  void* const over = rig.allocate(20 * kMiB, next);
  CHECK(rig.onHost(over));
  CHECK(rig.inHostNow() == in_host);
  rig.free(over);
  rig.free(first);
  void* const back = rig.allocate(20 * kMiB, next);
  CHECK(rig.onDevice(back));
  rig.free(back);
}

}  // namespace cistern::test
