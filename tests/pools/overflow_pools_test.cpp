// Overflow of private pools, captures, exports and pools that sleep, and by several threads.
#include "tests/pools/overflow_support.hpp"

namespace cistern::test {

TEST_CASE("a private pool overflows, and keeps that memory to itself", "[pools][overflow][pages]") {
  OverflowRig rig;
  const Stream s = rig.stream();
  MemPool pool(rig.pools), other(rig.pools);
  void* const first = rig.allocate(60 * kMiB, s);
  void* const over = pool.allocate(20 * kMiB, s);
  CHECK(rig.onHost(over));
  CHECK(rig.reservedBy(pool.id()) == mib(4));  // the device had no more; the rest is the host's
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

TEST_CASE("a capture takes the device's memory of a freed block of overflow",
          "[pools][overflow][pages]") {
  for (const std::size_t bytes : {std::size_t(20 * kMiB), std::size_t(256 * kKiB)}) {
    OverflowRig rig;
    const Stream s = rig.stream();
    void* const first = rig.allocate(40 * kMiB, s);
    void* const over = rig.allocate(60 * kMiB, s);
    REQUIRE(rig.onHost(over));
    rig.free(over);
    rig.finish();
    Graph graph(rig.pools);
    void* captured = nullptr;
    {
      GraphCapture capture(graph, s);
      captured = rig.allocate(bytes, s);
      rig.work.fill(s, toAddress(captured), bytes, 5);
      capture.end();
    }
    CHECK(rig.onDevice(captured));
    graph.replay(s);
    CHECK(rig.wrong(captured, bytes, s, 5) == 0);
    rig.free(captured);
    graph.reset();
    rig.free(first);
  }
}

TEST_CASE("a capture finds the device's memory in many heaps of overflow",
          "[pools][overflow][pages]") {
  constexpr std::uint64_t kStreams = 100;
  OverflowRig rig(2 * kStreams * kMiB, kGiB);
  const Stream s = rig.stream();
  std::vector<void*> full, mixed;
  for (std::uint64_t i = 0; i < kStreams; ++i) full.push_back(rig.allocate(2 * kMiB, s));
  for (void* block : full) {
    rig.free(block);
    rig.finish();
    mixed.push_back(rig.allocate(5 * kMiB, rig.stream()));
  }
  for (void* block : mixed) rig.free(block);
  rig.finish();
  Graph graph(rig.pools);
  GraphCapture capture(graph, s);
  void* const block = rig.allocate((2 * kStreams - 4) * kMiB, s);
  CHECK(rig.onDevice(block));
  capture.end();
  rig.free(block);
}

TEST_CASE("a capture takes the device's memory of overflow that is off by now",
          "[pools][overflow][pages]") {
  OverflowRig rig(64 * kMiB, 40 * kMiB);
  const Stream s = rig.stream(), t = rig.stream();
  void* const first = rig.allocate(40 * kMiB, s);
  void* const over = rig.allocate(40 * kMiB, s);
  REQUIRE(rig.allocator.hostBytesIn(over) == 16 * kMiB);  // 24 MiB of it lie on the device
  rig.free(first);
  rig.finish();
  rig.allocator.emptyCache();
  rig.allocator.setOverflow(0);
  void* const next = rig.allocate(40 * kMiB, t);
  rig.free(over);
  rig.finish();
  Graph graph(rig.pools);
  GraphCapture capture(graph, t);
  void* const block = rig.allocate(20 * kMiB, t);
  CHECK(rig.onDevice(block));
  capture.end();
  rig.free(block);
  rig.free(next);
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
  CHECK(report.stayed >= 16 * kMiB);
  REQUIRE_FALSE(report.why.empty());
  CHECK(report.why[0].why == WhyStayed::kOnHost);
  CHECK(takenOf(rig.sim()) == 0);
  CHECK(rig.reservedBy(pool.id()) == 0);
  CHECK(sumsOf(rig.allocator.snapshot()) == sumsOf(rig.allocator.memoryStats()));
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

TEST_CASE("a refusal in a capture says what was missing on either", "[pools][overflow][pages]") {
  OverflowRig rig(64 * kMiB, 32 * kMiB);
  const Stream s = rig.stream();
  void* const first = rig.allocate(58 * kMiB, s);
  const auto advice = [&] {
    Graph graph(rig.pools);
    GraphCapture capture(graph, s);
    try {
      rig.free(rig.allocate(40 * kMiB, s));
      return std::string("served");
    } catch (const OutOfMemory& error) {
      return error.report().advice();
    }
  };
  CHECK(advice().find("34.00 MiB more device memory, or 8.00 MiB of overflow, would have made") !=
        std::string::npos);
  rig.allocator.setOverflow(40 * kMiB);
  CHECK(advice() == "served");
  rig.free(first);
}

}  // namespace cistern::test
