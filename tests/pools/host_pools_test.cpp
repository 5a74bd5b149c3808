// Pools in host memory: all of their pages are host pages, and no others ever are.
#include "tests/pools/sleep_support.hpp"

namespace cistern::test {
namespace {

sim::SimConfig hostOf(std::uint64_t capacity, std::uint64_t host) {
  sim::SimConfig config = simOf(capacity);
  config.host_page_capacity = host;
  return config;
}

MemPoolOptions inHost() {
  MemPoolOptions options;
  options.location = Location::kHost;
  return options;
}

/// A small device, a host with more memory, and one pool in that.
struct HostRig : PoolRig {
  explicit HostRig(std::uint64_t capacity = 64 * kMiB, std::uint64_t host = kGiB,
                   std::string_view conf = "")
      : PoolRig(conf, hostOf(capacity, host)),
        host_bytes(host),
        pool(pools, inHost()),
        s(stream()) {}

  MempoolId_t id() const { return pool.id(); }
  std::uint64_t inHostNow() { return host_bytes - sim().hostPageBytesLeft(); }
  std::uint64_t inDeviceNow() { return takenOf(sim()); }
  MemoryStats stats() { return allocator.memoryStats(); }
  void audit() {
    allocator.audit();
    sim().audit();
  }

  const std::uint64_t host_bytes;
  MemPool pool;
  Stream s;
};

}  // namespace

TEST_CASE("a pool in host memory takes nothing of the device", "[pools][host][pages]") {
  HostRig rig;
  void* const block = rig.pool.allocate(200 * kMiB, rig.s);  // three times what the device has
  void* const small = rig.pool.allocate(1000, rig.s);
  void* const other = rig.allocate(kMiB, rig.s);
  CHECK(rig.inHostNow() >= 200 * kMiB);
  CHECK(rig.inDeviceNow() <= 4 * kMiB);
  CHECK(rig.allocator.locationOf(block) == Location::kHost);
  CHECK(rig.allocator.locationOf(small) == Location::kHost);
  CHECK(rig.allocator.locationOf(other) == Location::kDevice);
  CHECK_THROWS_AS(rig.allocator.locationOf(&rig), InvalidArgument);
  rig.work.fill(rig.s, toAddress(block), 200 * kMiB, 7);
  rig.work.verify(rig.s, toAddress(block), 200 * kMiB, 7);
  CHECK(rig.work.mismatches() == 0);
  rig.audit();
  for (void* of : {block, small, other}) rig.free(of);
  rig.pool.emptyCache();
  CHECK(rig.inHostNow() == 0);
}

TEST_CASE("a device that refuses pages is served by segments beside a pool in host memory",
          "[pools][host][pages]") {
  for (const bool emptied : {false, true}) {
    HostRig rig;
    void* before = rig.pool.allocate(8 * kMiB, rig.s);
    if (emptied) {
      rig.free(before);
      rig.pool.emptyCache();
    }
    rig.sim().faults().failAll(Call::kCreatePage, ErrorKind::kNotSupported);
    void* const block = rig.allocate(8 * kMiB, rig.s);
    CHECK(rig.allocator.locationOf(block) == Location::kDevice);
    CHECK(countOf(rig.sim(), Call::kMalloc) == 1);
    void* const after = rig.pool.allocate(100 * kMiB, rig.s);
    CHECK(rig.allocator.locationOf(after) == Location::kHost);
    rig.audit();
    rig.free(after);
    rig.free(block);
    if (!emptied) rig.free(before);
    rig.sim().faults().clear();
  }
}

TEST_CASE("host memory is counted apart", "[pools][host][pages]") {
  HostRig rig;
  void* const block = rig.pool.allocate(100 * kMiB, rig.s);
  void* const other = rig.allocate(10 * kMiB, rig.s);
  const MemoryStats stats = rig.stats();
  CHECK(stats.host_page_bytes == rig.inHostNow());
  CHECK(stats.host_page_allocated_bytes == 100 * kMiB);
  CHECK(std::uint64_t(stats[Stat::kReservedBytes].current) == rig.inDeviceNow());
  CHECK(std::uint64_t(stats[Stat::kReservedBytes].peak) == rig.inDeviceNow());
  CHECK(stats[Stat::kAllocatedBytes].current == std::int64_t(110 * kMiB));
  CHECK(rig.reservedBy(rig.id()) == 0);
  CHECK(rig.pools.memoryStats(rig.id())[std::size_t(Stat::kSegment)].current == 0);
  rig.free(block);
  rig.free(other);
  CHECK(rig.stats().host_page_allocated_bytes == 0);
  CHECK(rig.stats().host_page_bytes == rig.inHostNow());
  rig.allocator.emptyCache();
  CHECK(rig.stats().host_page_bytes == 0);
  CHECK(rig.stats()[Stat::kReservedBytes].current == 0);
}

TEST_CASE("memory that a pool on the host leaves behind goes back with the rest",
          "[pools][host][pages]") {
  HostRig rig;
  void* block = nullptr;
  {
    MemPool gone(rig.pools, inHost());
    block = gone.allocate(64 * kMiB, rig.s);
  }
  void* const kept = rig.pool.allocate(16 * kMiB, rig.s);
  rig.free(kept);
  rig.free(block);
  REQUIRE(rig.inHostNow() >= 80 * kMiB);
  rig.pools.emptyUnowned();
  CHECK(rig.inHostNow() >= 16 * kMiB);  // a pool in use keeps what it has
  CHECK(rig.inHostNow() < 64 * kMiB);
}

TEST_CASE("the limit does not count host memory", "[pools][host][pages]") {
  HostRig rig(kGiB);
  rig.allocator.setLimit(16 * kMiB);
  void* const block = rig.pool.allocate(100 * kMiB, rig.s);
  void* const other = rig.allocate(16 * kMiB, rig.s);
  CHECK(rig.outOfMemory(2 * kMiB, rig.s));
  rig.free(block);
  rig.free(other);
}

TEST_CASE("host memory that lies free never serves another pool, nor the other way round",
          "[pools][host][pages]") {
  HostRig rig(64 * kMiB, 64 * kMiB);
  SECTION("a live pool's") {
    rig.free(rig.pool.allocate(60 * kMiB, rig.s));
    void* const block = rig.allocate(40 * kMiB, rig.s);
    CHECK(rig.allocator.locationOf(block) == Location::kDevice);
    CHECK(rig.inHostNow() >= 60 * kMiB);
    rig.free(block);
    void* const back = rig.pool.allocate(50 * kMiB, rig.s);
    CHECK(rig.allocator.locationOf(back) == Location::kHost);
    rig.free(back);
  }
  SECTION("a draining pool's, on another stream too") {
    void* kept = nullptr;
    const Stream t = rig.stream();
    {
      MemPool draining(rig.pools, inHost());
      kept = draining.allocate(2 * kMiB, rig.s);
      void* const gone = draining.allocate(40 * kMiB, rig.s);
      rig.free(gone);
    }
    void* const held = rig.pool.allocate(20 * kMiB, t);
    for (const Stream on : {rig.s, t}) {
      void* const block = rig.allocate(30 * kMiB, on);
      CHECK(rig.allocator.locationOf(block) == Location::kDevice);
      CHECK(rig.outOfMemory(60 * kMiB, on));
      rig.audit();
      rig.free(block);
    }
    rig.free(held);
    rig.free(kept);
  }
  SECTION("the default pool's, when the host is full") {
    rig.free(rig.allocate(60 * kMiB, rig.s));
    void* const block = rig.pool.allocate(60 * kMiB, rig.s);
    CHECK_FALSE(refusalOf<OutOfMemory>([&] { (void)rig.pool.allocate(20 * kMiB, rig.s); }).empty());
    rig.free(block);
  }
  rig.audit();
}

TEST_CASE("host memory moves between the streams of its pool", "[pools][host][pages]") {
  HostRig rig(64 * kMiB, 64 * kMiB);
  const Stream t = rig.stream();
  rig.free(rig.pool.allocate(60 * kMiB, rig.s));
  rig.finish();
  void* const block = rig.pool.allocate(50 * kMiB, t);
  CHECK(rig.allocator.locationOf(block) == Location::kHost);
  rig.touch(t, block);
  rig.audit();
  rig.free(block);
}

TEST_CASE("draining host memory serves another pool in host memory", "[pools][host][pages]") {
  HostRig rig(64 * kMiB, 64 * kMiB);
  void* kept = nullptr;
  {
    MemPool draining(rig.pools, inHost());
    kept = draining.allocate(2 * kMiB, rig.s);
    rig.free(draining.allocate(40 * kMiB, rig.s));
    rig.finish();
  }
  void* const block = rig.pool.allocate(50 * kMiB, rig.s);
  CHECK(rig.allocator.locationOf(block) == Location::kHost);
  rig.free(block);
  rig.free(kept);
}

TEST_CASE("a record of a pool that was in host memory serves others", "[pools][host][pages]") {
  HostRig rig;
  for (int i = 0; i < 3; ++i) {
    MempoolId_t gone;
    {
      MemPool host(rig.pools, inHost());
      gone = host.id();
      rig.free(host.allocate(20 * kMiB, rig.s));
    }
    rig.finish();
    rig.allocator.emptyCache();
    CHECK_FALSE(rig.known(gone));
    MemPool device(rig.pools);
    void* const block = device.allocate(20 * kMiB, rig.s);
    CHECK(rig.allocator.locationOf(block) == Location::kDevice);
    rig.free(block);
  }
}

TEST_CASE("out of host memory names the host, and what it admits", "[pools][host][pages]") {
  HostRig rig(64 * kMiB, 32 * kMiB);
  void* const block = rig.pool.allocate(20 * kMiB, rig.s);
  void* const on_device = rig.allocate(8 * kMiB, rig.s);
  try {
    (void)rig.pool.allocate(20 * kMiB, rig.s);
    FAIL("it was served");
  } catch (const OutOfMemory& failure) {
    const OutOfMemoryReport& report = failure.report();
    CHECK(report.location == Location::kHost);
    CHECK(report.host_reserved == rig.inHostNow());
    CHECK(report.host_left == rig.sim().hostPageBytesLeft());
    CHECK(report.allocated == 8 * kMiB);
    REQUIRE(report.holders.size() == 1);  // those whose free would help
    CHECK(report.holders[0].bytes == 20 * kMiB);
    INFO(report.text());
    CHECK(report.text().find("in host memory") != std::string::npos);
    CHECK(report.advice().find("The host admits 12.00 MiB") != std::string::npos);
    CHECK(report.advice().find("8.00 MiB more would have made it fit") != std::string::npos);
  }
  void* const other = rig.allocate(20 * kMiB, rig.s);  // the device is as usable as before
  rig.free(block);
  void* const again = rig.pool.allocate(30 * kMiB, rig.s);  // freed memory is put together again
  for (void* of : {on_device, other, again}) rig.free(of);
}

TEST_CASE("a block of host memory that can never exist is told as such", "[pools][host][pages]") {
  HostRig rig(64 * kMiB, UINT64_MAX);
  for (const std::uint64_t bytes : {513 * kGiB, 2 * kTiB}) {
    const std::string text = refusalOf<OutOfMemory>([&] { (void)rig.pool.allocate(bytes, rig.s); });
    CHECK(text.find("No block of host memory can be larger than 512.00 GiB.") != std::string::npos);
  }
}

TEST_CASE("a driver that refuses host pages is out of memory by name", "[pools][host][pages]") {
  HostRig rig;
  rig.sim().faults().failAll(Call::kCreateHostPage, ErrorKind::kNotSupported);
  const std::string text = refusalOf<OutOfMemory>([&] { (void)rig.pool.allocate(kMiB, rig.s); });
  CHECK(text.find("create_host_page") != std::string::npos);
  void* const block = rig.allocate(kMiB, rig.s);
  CHECK(onPages(rig.allocator));
  rig.sim().faults().clear();
  void* const later = rig.pool.allocate(kMiB, rig.s);
  CHECK(rig.allocator.locationOf(later) == Location::kHost);
  for (void* of : {block, later}) rig.free(of);
}

TEST_CASE("a shortage of host memory is told right where nothing limits the host",
          "[pools][host][pages]") {
  HostRig rig(64 * kMiB, UINT64_MAX);
  void* const kept = rig.pool.allocate(3 * kMiB, rig.s);  // in 4 MiB of pages
  std::vector<MemoryShortage> shortages;
  rig.allocator.registerReclaimCallback([&](const MemoryShortage& shortage) {
    shortages.push_back(shortage);
    return false;
  });
  rig.sim().faults().failAll(Call::kCreateHostPage, ErrorKind::kOther);
  const std::string text =
      refusalOf<OutOfMemory>([&] { (void)rig.pool.allocate(20 * kMiB, rig.s); });
  INFO(text);
  CHECK(text.find("1.00 MiB is free") != std::string::npos);
  CHECK(text.find("although the host has room") != std::string::npos);
  REQUIRE(shortages.size() == 1);
  CHECK(shortages[0].missing == 20 * kMiB);
  rig.free(kept);
}

TEST_CASE("queued work on the device's memory is no reason for a shortage of the host's",
          "[pools][host][pages]") {
  HostRig rig(64 * kMiB, 32 * kMiB);
  const Stream t = rig.stream();
  void* const used = rig.allocate(20 * kMiB, rig.s);
  rig.join(t, rig.s);
  rig.allocator.recordStream(used, t);
  const sim::Access access{toAddress(used), kMiB, sim::AccessKind::kWrite};
  rig.sim().launch(t, {"long", {access}, 10'000'000'000, {}}).orThrow();
  rig.free(used);
  Graph graph(rig.pools);
  const Stream captured = rig.stream();
  graph.captureBegin(captured, rig.id(), CaptureMode::kRelaxed);  // which waits for nothing
  const std::string text = refusalOf<OutOfMemory>([&] { (void)rig.allocate(60 * kMiB, captured); });
  graph.captureEnd();
  INFO(text);
  CHECK(text.find("in use by queued work 20.00 MiB") != std::string::npos);
  CHECK(text.find("queued work of other streams") == std::string::npos);
  CHECK(text.find("more would have made it fit") != std::string::npos);
}

TEST_CASE("any device call of a host pool may fail, and nothing is lost", "[pools][host][pages]") {
  for (std::uint64_t nth = 1; nth <= 40; ++nth) {
    HostRig rig(64 * kMiB, 64 * kMiB);
    void* const kept = rig.pool.allocate(3 * kMiB, rig.s);
    rig.sim().faults().failNthOfAll(nth);
    for (const std::size_t bytes : {20 * kMiB, 30 * kMiB, 1000ul}) {
      try {
        rig.free(rig.pool.allocate(bytes, rig.s));
      } catch (const OutOfMemory&) {
      }
      rig.audit();
    }
    rig.sim().faults().clear();
    rig.free(kept);
    rig.finish();
    rig.allocator.emptyCache();
    CHECK(rig.inHostNow() == 0);
  }
}

// ---- What does not go with host memory ----------------------------------------------------------

TEST_CASE("an export of a block in host memory is refused by name", "[pools][host][pages]") {
  HostRig rig;
  void* const block = rig.pool.allocate(4 * kMiB, rig.s);
  const std::string text = refusalOf<PoolError>([&] { (void)rig.allocator.exportBlock(block); });
  CHECK(text.find("host memory") != std::string::npos);
  rig.free(block);
  rig.pool.emptyCache();
  CHECK(rig.inHostNow() == 0);  // nothing was held
}

TEST_CASE("a pool in host memory does not sleep", "[pools][host][pages]") {
  HostRig rig;
  MemPool other(rig.pools);
  void* const block = rig.pool.allocate(4 * kMiB, rig.s);
  void* const beside = other.allocate(4 * kMiB, rig.s);
  CHECK(refusedFor(rig.id(), "host memory", [&] {
    (void)rig.pools.sleep({other.id(), rig.id()});
  }));
  CHECK_FALSE(rig.pools.isAsleep(rig.id()));
  CHECK_FALSE(rig.pools.isAsleep(other.id()));
  rig.free(rig.pool.allocate(4 * kMiB, rig.s));
  rig.free(block);
  rig.free(beside);
}

TEST_CASE("a pool in host memory neither lends nor comes in segments", "[pools][host][pages]") {
  HostRig rig;
  MemPoolOptions lends = inHost(), whole = inHost();
  lends.use_on_oom = true;
  whole.no_split = true;
  const auto refusedBy = [&](const MemPoolOptions& options) {
    return refusalOf<PoolError>([&] { MemPool pool(rig.pools, options); });
  };
  CHECK(refusedBy(lends).find("host memory") != std::string::npos);
  CHECK(refusedBy(whole).find("segments") != std::string::npos);
  CHECK(refusedFor(rig.id(), "host memory", [&] { rig.pools.setUseOnOOM(rig.id(), true); }));
  CHECK(refusedFor(rig.id(), "pages", [&] { rig.pools.setNoSplit(rig.id()); }));
  rig.pools.setUseOnOOM(rig.id(), false);
  rig.free(rig.pool.allocate(kMiB, rig.s));
}

TEST_CASE("without pages there is no pool in host memory", "[pools][host][pages]") {
  SECTION("of the device") {
    sim::SimConfig config = simOf(kGiB);
    config.virtual_memory = false;
    PoolRig rig("", config);
    CHECK(refusalOf<PoolError>([&] {
            MemPool pool(rig.pools, inHost());
          }).find("makes no pages of host memory") != std::string::npos);
  }
  SECTION("of the allocator") {
    PoolRig rig("backing:segments");
    CHECK(refusalOf<PoolError>([&] { MemPool pool(rig.pools, inHost()); }).find("segments") !=
          std::string::npos);
  }
}

TEST_CASE("where the driver refuses all pages, a pool in host memory gets no segments",
          "[pools][host][pages]") {
  HostRig rig;
  for (const Call call : {Call::kCreatePage, Call::kCreateHostPage})
    rig.sim().faults().failAll(call, ErrorKind::kNotSupported);
  CHECK_FALSE(refusalOf<OutOfMemory>([&] { (void)rig.pool.allocate(kMiB, rig.s); }).empty());
  void* const block = rig.allocate(kMiB, rig.s);
  CHECK_FALSE(refusalOf<OutOfMemory>([&] { (void)rig.pool.allocate(kMiB, rig.s); }).empty());
  CHECK(rig.stats().host_page_bytes == 0);
  rig.free(block);
}

// ---- What does ----------------------------------------------------------------------------------

TEST_CASE("a checkpoint of a pool in host memory is set back", "[pools][host][pages]") {
  HostRig rig;
  void* const kept = rig.pool.allocate(8 * kMiB, rig.s);
  const PoolCheckpoint at = rig.pools.getCheckpointState(rig.id());
  rig.free(kept);
  void* const other = rig.pool.allocate(2 * kMiB, rig.s);
  const CheckpointDelta delta = rig.pools.setCheckpointPoolState(at);
  CHECK(delta.freed == std::vector<void*>{other});
  CHECK(delta.made == std::vector<void*>{kept});
  CHECK(rig.allocator.locationOf(kept) == Location::kHost);
  rig.free(kept);
}

TEST_CASE("a graph is captured into a pool in host memory, and replays", "[pools][host][pages]") {
  HostRig rig;
  Graph graph(rig.pools);
  graph.captureBegin(rig.s, rig.id());
  void* const result = rig.written(20 * kMiB, rig.s);
  rig.free(rig.written(30 * kMiB, rig.s));
  graph.captureEnd();
  CHECK(rig.allocator.locationOf(result) == Location::kHost);
  CHECK(rig.inDeviceNow() == 0);
  for (int i = 0; i < 3; ++i) graph.replay(rig.s);
  rig.finish();
  rig.allocator.emptyCache();
  CHECK(rig.inHostNow() >= 20 * kMiB);
  rig.audit();
  rig.free(result);
  graph.reset();
  rig.finish();
  rig.allocator.emptyCache();
  CHECK(rig.inHostNow() == 0);
}

TEST_CASE("what host pages cost leaves the size of the device's pages alone",
          "[pools][host][pages]") {
  const auto pagesAfter = [](bool host) {
    HostRig rig(80 * kGiB, 80 * kGiB);  // a page is at most a part of the limit
    std::vector<void*> kept;
    for (int i = 0; host && i < 200; ++i) {
      void* const block = rig.pool.allocate(std::size_t(8 + i % 7) * kMiB, rig.s);
      if (i % 4 == 0) {
        kept.push_back(block);
      } else {
        rig.free(block);
      }
      if (i % 20 == 0) rig.pool.emptyCache();
    }
    const std::uint64_t before = countOf(rig.sim(), Call::kCreatePage);
    void* const block = rig.allocate(256 * kMiB, rig.s);
    const std::uint64_t made = countOf(rig.sim(), Call::kCreatePage) - before;
    rig.free(block);
    for (void* of : kept) rig.free(of);
    return made;
  };
  CHECK(pagesAfter(true) == pagesAfter(false));
}

TEST_CASE("a snapshot says where memory lies", "[pools][host][pages]") {
  HostRig rig;
  void *const block = rig.pool.allocate(4 * kMiB, rig.s), *const other = rig.allocate(kMiB, rig.s);
  const Snapshot snapshot = rig.allocator.snapshot();
  REQUIRE(snapshot.segments.size() == 2);
  for (const SnapshotSegment& segment : snapshot.segments)
    CHECK((segment.location == Location::kHost) == (segment.pool == rig.id()));
  CHECK(snapshotJson(snapshot).find(R"("location":"host")") != std::string::npos);
  for (void* of : {block, other}) rig.free(of);
}

TEST_CASE("garbage collection for the device leaves host memory alone", "[pools][host][pages]") {
  HostRig rig(64 * kMiB, kGiB, "garbage_collection_threshold:0.5");
  rig.free(rig.pool.allocate(100 * kMiB, rig.s));
  const std::uint64_t before = rig.inHostNow();
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(rig.allocate(8 * kMiB, rig.s));
  for (void* block : blocks) rig.free(block);
  for (int i = 0; i < 4; ++i) rig.free(rig.allocate(std::size_t(9 + i) * kMiB, rig.s));
  CHECK(rig.inHostNow() == before);
}

}  // namespace cistern::test
