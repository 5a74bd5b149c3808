// Pools sleep and wake: their memory goes to the device and comes back, with what was in it.
#include "tests/pools/sleep_support.hpp"

namespace cistern::test {

TEST_CASE("a pool that sleeps gives its memory to the device, and has it back at wake",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const large = rig.filled(40 * kMiB, 1);
  void* const small = rig.filled(64 * kKiB, 2);
  const std::uint64_t taken = rig.taken();
  const auto reserved = std::uint64_t(rig.reservedBy(rig.id()));
  CHECK(reserved == taken);
  const SleepReport report = rig.pools.sleep({rig.id()});
  rig.audit();
  CHECK(report.released == reserved);
  CHECK(report.stayed == 0);
  CHECK(report.saved >= 40 * kMiB + 64 * kKiB);
  CHECK(report.saved <= (40 * kMiB + 64 * kKiB) * 105 / 100);
  CHECK(rig.taken() == 0);
  CHECK(rig.reservedBy(rig.id()) == 0);
  CHECK(rig.pools.isAsleep(rig.id()));
  CHECK(rig.holds(rig.id(), {large, small}));
  const WakeReport woken = rig.pools.wake({rig.id()});
  rig.audit();
  CHECK_FALSE(rig.pools.isAsleep(rig.id()));
  CHECK(woken.mapped == report.released);
  CHECK(woken.restored == report.saved);
  CHECK(rig.taken() == taken);
  CHECK(rig.wrong(large, 40 * kMiB, 1) == 0);
  CHECK(rig.wrong(small, 64 * kKiB, 2) == 0);
  rig.free(large);
  rig.free(small);
}

TEST_CASE("what lies free in a pool goes back, and is not made again at wake",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const kept = rig.filled(2 * kMiB, 1);
  void* const gone = rig.filled(60 * kMiB, 2);
  rig.free(gone);
  const auto reserved = std::uint64_t(rig.reservedBy(rig.id()));
  const SleepReport report = rig.pools.sleep({rig.id()});
  CHECK(report.released == reserved);
  CHECK(rig.taken() == 0);
  CHECK(rig.pools.wake({rig.id()}).mapped < 20 * kMiB);
  CHECK(rig.wrong(kept, 2 * kMiB, 1) == 0);
  void* const again = rig.filled(60 * kMiB, 3);
  CHECK(rig.wrong(again, 60 * kMiB, 3) == 0);
  rig.free(kept);
  rig.free(again);
}

TEST_CASE("what was saved can be read while the pool sleeps", "[pools][sleep][pages]") {
  SleepRig rig;
  void *const block = rig.filled(40 * kMiB, 7), *const dropped = rig.filled(kMiB, 8);
  rig.pools.setContents(dropped, Contents::kDrop);
  std::vector<std::uint32_t> read(40 * kMiB / 4);
  CHECK_FALSE(rig.pools.copySaved(read.data(), block, 4));  // it is awake
  (void)rig.pools.sleep({rig.id()});
  REQUIRE(rig.pools.copySaved(read.data(), block, 40 * kMiB));
  CHECK(read.front() == 7);
  CHECK(read[1'000'000] == 7 + 1'000'000);
  REQUIRE(rig.pools.copySaved(read.data(), static_cast<std::byte*>(block) + 400, 8));
  CHECK((read[0] == 107 && read[1] == 108 && read[2] == 9));
  CHECK_FALSE(rig.pools.copySaved(read.data(), dropped, 4));
  CHECK_FALSE(rig.pools.copySaved(read.data(), static_cast<std::byte*>(block) + 1, 41 * kMiB));
  CHECK(read[0] == 107);
  (void)rig.pools.wake({rig.id()});
  CHECK_FALSE(rig.pools.copySaved(read.data(), block, 4));
  for (void* of : {block, dropped}) rig.free(of);
}

TEST_CASE("bytes that are kept at wake can be read until the pool sleeps again",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void *const block = rig.filled(40 * kMiB, 7), *const dropped = rig.filled(kMiB, 8);
  rig.pools.setContents(dropped, Contents::kDrop);
  std::vector<std::uint32_t> read(40 * kMiB / 4);
  (void)rig.pools.sleep({rig.id()});
  CHECK(rig.pools.wake({rig.id()}, HostMemory::kKeepSaved).pinned >= 40 * kMiB);
  rig.work.fill(rig.s, toAddress(block), 40 * kMiB, 9);
  REQUIRE(rig.pools.copySaved(read.data(), block, 40 * kMiB));
  CHECK(read[1'000'000] == 7 + 1'000'000);
  REQUIRE(rig.pools.copySaved(read.data(), static_cast<std::byte*>(block) + 400, 8));
  CHECK(read[0] == 107);
  CHECK_FALSE(rig.pools.copySaved(read.data(), dropped, 4));
  CHECK_FALSE(rig.pools.copySaved(read.data(), static_cast<std::byte*>(block) + 4, 40 * kMiB));

  // That sleep takes the host memory of the last one.
  CHECK(rig.pools.sleep({rig.id()}).pinned_anew == 0);
  REQUIRE(rig.pools.copySaved(read.data(), block, 4));
  CHECK(read[0] == 9);
  (void)rig.pools.wake({rig.id()});
  CHECK_FALSE(rig.pools.copySaved(read.data(), block, 4));
  for (void* of : {block, dropped}) rig.free(of);
  rig.audit();
}

TEST_CASE("kept bytes are those of a block, and of none that comes after it",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void *const freed = rig.filled(8 * kMiB, 1), *const kept = rig.filled(8 * kMiB, 2);
  (void)rig.pools.sleep({rig.id()});
  (void)rig.pools.wake({rig.id()}, HostMemory::kKeepSaved);
  rig.free(freed);
  std::uint32_t read = 0;
  CHECK_FALSE(rig.pools.copySaved(&read, freed, 4));
  void* const later = rig.filled(8 * kMiB, 3);
  REQUIRE(later == freed);
  CHECK_FALSE(rig.pools.copySaved(&read, later, 4));
  REQUIRE(rig.pools.copySaved(&read, kept, 4));
  CHECK(read == 2);
  for (void* of : {later, kept}) rig.free(of);
  rig.audit();
}

TEST_CASE("kept bytes go when they are let go of, or with their pool", "[pools][sleep][pages]") {
  SleepRig rig;
  std::uint32_t read = 0;
  void* const block = rig.filled(8 * kMiB, 1);
  (void)rig.pools.sleep({rig.id()});
  (void)rig.pools.wake({rig.id()}, HostMemory::kKeepSaved);
  rig.pools.trimHostMemory();
  CHECK_FALSE(rig.pools.copySaved(&read, block, 4));
  CHECK(rig.allocator.memoryStats().asleep_host_bytes == 0);
  {
    MemPool other(rig.pools);
    rig.free(other.allocate(12 * kMiB, rig.s));
    void* const of_other = other.allocate(12 * kMiB, rig.s);
    (void)rig.pools.sleep({other.id()});
    (void)rig.pools.wake({other.id()}, HostMemory::kKeepSaved);
    CHECK(rig.pools.copySaved(&read, of_other, 4));
    rig.free(of_other);
  }
  rig.allocator.emptyCache();
  CHECK(rig.pools.sleep({rig.id()}).pinned_anew == 0);  // in the memory of the pool that is gone
  (void)rig.pools.wake({rig.id()}, HostMemory::kGiveBack);
  CHECK(rig.allocator.memoryStats().asleep_host_bytes == 0);
  rig.free(block);
}

TEST_CASE("neighbouring pages come back as large ones", "[pools][sleep][pages]") {
  SleepRig rig(simOf(kGiB), "page_size:2M");
  std::vector<void*> blocks;
  for (std::uint32_t i = 0; i < 200; ++i) blocks.push_back(rig.filled(800 * kKiB, i));
  const std::uint64_t before = rig.taken();
  (void)rig.pools.sleep({rig.id()});
  const std::uint64_t created = countOf(rig.sim(), Call::kCreatePage);
  (void)rig.pools.wake({rig.id()});
  rig.audit();
  CHECK(countOf(rig.sim(), Call::kCreatePage) - created <= 160 / 32 + 2);
  CHECK(rig.taken() == before);
  for (std::uint32_t i = 0; i < 200; ++i) CHECK(rig.wrong(blocks[i], 800 * kKiB, i) == 0);
  (void)rig.pools.sleep({rig.id()});
  for (std::uint32_t i = 50; i < 200; ++i) rig.free(blocks[i]);
  (void)rig.pools.wake({rig.id()});
  rig.audit();
  CHECK(rig.taken() <= 64 * kMiB);
  for (std::uint32_t i = 0; i < 50; ++i) {
    CHECK(rig.wrong(blocks[i], 800 * kKiB, i) == 0);
    rig.free(blocks[i]);
  }
}

TEST_CASE("a block that is freed while its pool sleeps is a hole, and never free memory",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const first = rig.filled(20 * kMiB, 1);
  void* const second = rig.filled(20 * kMiB, 2);
  void* const third = rig.filled(kMiB / 2, 3);
  void* const fourth = rig.filled(kMiB / 2, 4);
  (void)rig.pools.sleep({rig.id()});
  rig.free(first);
  rig.free(third);
  rig.audit();
  CHECK(rig.allocator.cacheInfo().free_bytes == 0);
  CHECK(nowOf(rig.allocator, Stat::kAllocation) == 2);
  CHECK(rig.pools.wake({rig.id()}).mapped <= 32 * kMiB);
  rig.audit();
  CHECK(rig.wrong(second, 20 * kMiB, 2) == 0);
  CHECK(rig.wrong(fourth, kMiB / 2, 4) == 0);
  void* const again = rig.filled(20 * kMiB, 5);
  CHECK(rig.wrong(second, 20 * kMiB, 2) == 0);
  for (void* block : {second, fourth, again}) rig.free(block);
  rig.pool.emptyCache();
  CHECK(rig.taken() == 0);
}

TEST_CASE("a pool whose blocks were all freed while it slept wakes with nothing",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.filled(20 * kMiB, 1);
  (void)rig.pools.sleep({rig.id()});
  rig.free(block);
  CHECK(rig.pools.wake({rig.id()}).mapped == 0);
  CHECK(rig.taken() == 0);
  rig.audit();
}

TEST_CASE("a pool that nobody uses any more goes, though it sleeps", "[pools][sleep][pages]") {
  SleepRig rig;
  MempoolId_t id;
  void* block = nullptr;
  {
    MemPool other(rig.pools);
    id = other.id();
    block = other.allocate(20 * kMiB, rig.s);
    (void)rig.pools.sleep({id});
  }
  CHECK(rig.known(id));
  rig.free(block);
  rig.allocator.emptyCache();
  CHECK_FALSE(rig.known(id));
  rig.audit();
}

TEST_CASE("a draining pool sleeps and wakes", "[pools][sleep][pages]") {
  SleepRig rig;
  auto other = std::make_unique<MemPool>(rig.pools);
  const MempoolId_t id = other->id();
  void* const block = other->allocate(20 * kMiB, rig.s);
  rig.work.fill(rig.s, toAddress(block), 20 * kMiB, 7);
  other = nullptr;
  CHECK(rig.pools.sleep({id}).released >= 20 * kMiB);
  CHECK(rig.taken() == 0);
  (void)rig.pools.wake({id});
  CHECK(rig.wrong(block, 20 * kMiB, 7) == 0);
  rig.free(block);
}

TEST_CASE("while a pool sleeps, what needs its memory is refused and says so",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.filled(4 * kMiB, 1);
  const PoolCheckpoint checkpoint = rig.pools.getCheckpointState(rig.id());
  (void)rig.pools.sleep({rig.id()});
  const auto refused = [&](auto verb) { return refusedFor(rig.id(), "asleep", verb); };
  const std::uint64_t waited = waits(rig.sim());
  CHECK(refused([&] { (void)rig.pool.allocate(kMiB, rig.s); }));
  CHECK(waits(rig.sim()) == waited);  // nothing is tried
  CHECK(refused([&] { (void)rig.pool.allocate(100, rig.stream()); }));
  CHECK(refused([&] {
    MemPoolScope scope(rig.pool);
    (void)rig.allocate(kMiB, rig.s);
  }));
  Graph graph(rig.pools);
  CHECK(refused([&] { graph.captureBegin(rig.s, rig.id()); }));
  CHECK(refused([&] { (void)rig.pools.setCheckpointPoolState(checkpoint); }));
  CHECK(refused([&] { (void)rig.allocator.exportBlock(block); }));
  CHECK(rig.pools.getCheckpointState(rig.id()).blocks.size() == 1);
  CHECK(rig.allocator.blockSize(block) == 4 * kMiB);
  rig.audit();
  (void)rig.pools.wake({rig.id()});
  CHECK(rig.wrong(block, 4 * kMiB, 1) == 0);
  rig.free(block);
}

TEST_CASE("pools that cannot sleep say why", "[pools][sleep][pages]") {
  SleepRig rig;
  CHECK(refusedFor({}, "default pool", [&] { (void)rig.pools.sleep({MempoolId_t{}}); }));
  constexpr MempoolId_t kNone{0, 1'000'000'999};
  CHECK(refusedFor(kNone, "not there", [&] { (void)rig.pools.sleep({kNone}); }));
  CHECK(refusedFor(kNone, "not there", [&] { (void)rig.pools.wake({kNone}); }));
  MemPoolOptions options;
  options.no_split = true;
  MemPool whole(rig.pools, options);
  CHECK(refusedFor(whole.id(), "segments", [&] { (void)rig.pools.sleep({whole.id()}); }));
  Graph graph(rig.pools);
  GraphCapture capture(graph, rig.s, rig.id());
  CHECK(refusedFor(rig.id(), "captured into", [&] { (void)rig.pools.sleep({rig.id()}); }));
  capture.end();
}

TEST_CASE("sleeping twice, and waking twice, is doing so once", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.filled(4 * kMiB, 1);
  CHECK(rig.pools.wake({rig.id()}).mapped == 0);
  CHECK(rig.pools.sleep({rig.id(), rig.id()}).released > 0);
  const SleepReport again = rig.pools.sleep({rig.id()});
  CHECK(again.released + again.stayed + again.saved == 0);
  CHECK(rig.pools.wake({rig.id(), rig.id()}).mapped > 0);
  CHECK(rig.pools.wake({rig.id()}).mapped == 0);
  CHECK(rig.wrong(block, 4 * kMiB, 1) == 0);
  rig.free(block);
}

TEST_CASE("a block that is freed while its pool sleeps is shown as pending, without memory",
          "[pools][sleep][pages]") {
  SleepRig rig;
  const Stream other = rig.stream();
  void* const block = rig.filled(3 * kMiB, 1);
  rig.allocator.recordStream(block, other);
  (void)rig.pools.sleep({rig.id()});
  rig.neverEnd(other);
  rig.free(block);
  const Snapshot snapshot = rig.allocator.snapshot();
  for (const SnapshotSegment& segment : snapshot.segments) {
    for (const SnapshotBlock& part : segment.blocks) {
      const bool pends = part.address == toAddress(block);
      CHECK(part.use == (pends ? BlockUse::kPending : BlockUse::kUnmapped));
      if (pends) CHECK(part.away == part.bytes);
    }
  }
  CHECK(sumsOf(snapshot) == sumsOf(rig.allocator.memoryStats()));
  CHECK(snapshotJson(snapshot).find(R"("state":"pending","stream":)") != std::string::npos);
}

TEST_CASE("statistics, snapshots and reports show what sleeps", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.filled(400 * kMiB, 1);
  void* const small = rig.filled(kKiB, 2);
  const auto useOf = [&](void* of) {
    for (const SnapshotSegment& segment : rig.allocator.snapshot().segments) {
      for (const SnapshotBlock& part : segment.blocks) {
        if (part.address == toAddress(of)) return part.use;
      }
    }
    return BlockUse::kFree;
  };
  const SleepReport report = rig.pools.sleep({rig.id()});
  const MemoryStats asleep = rig.allocator.memoryStats();
  CHECK(asleep.asleep_bytes == report.released);
  CHECK(asleep.asleep_host_bytes >= report.saved);
  CHECK(asleep[Stat::kReservedBytes].current == 0);
  CHECK(asleep[Stat::kAllocation].current == 2);
  CHECK(useOf(block) == BlockUse::kAsleep);
  CHECK(useOf(small) == BlockUse::kAsleep);
  CHECK(snapshotJson(rig.allocator.snapshot()).find("asleep") != std::string::npos);
  std::string text;
  try {
    rig.free(rig.allocate(2 * kGiB, rig.s));
  } catch (const OutOfMemory& error) {
    CHECK(error.report().reserved == 0);
    text = error.what();
  }
  CHECK(text.find("400.00 MiB") == std::string::npos);
  (void)rig.pools.wake({rig.id()}, HostMemory::kGiveBack);
  CHECK(rig.allocator.memoryStats().asleep_bytes == 0);
  CHECK(rig.allocator.memoryStats().asleep_host_bytes == 0);
  CHECK(useOf(block) == BlockUse::kAllocated);
  rig.free(block);
  rig.free(small);
}

TEST_CASE("some of several pools wake, each with its own bytes", "[pools][sleep][pages]") {
  SleepRig rig;
  MemPool other(rig.pools), third(rig.pools);
  void* const a = rig.filled(12 * kMiB, 1);
  void* const b = other.allocate(12 * kMiB, rig.s);
  rig.work.fill(rig.s, toAddress(b), 12 * kMiB, 2);
  void* const c = third.allocate(12 * kMiB, rig.s);
  rig.work.fill(rig.s, toAddress(c), 12 * kMiB, 3);
  (void)rig.pools.sleep({rig.id(), other.id(), third.id()});
  CHECK(rig.taken() == 0);
  (void)rig.pools.wake({other.id()});
  CHECK(rig.wrong(b, 12 * kMiB, 2) == 0);
  CHECK(rig.pools.isAsleep(rig.id()));
  rig.audit();
  (void)rig.pools.sleep({other.id()});
  (void)rig.pools.wake({third.id(), rig.id()});
  CHECK(rig.wrong(a, 12 * kMiB, 1) == 0);
  CHECK(rig.wrong(c, 12 * kMiB, 3) == 0);
  (void)rig.pools.wake({other.id()});
  CHECK(rig.wrong(b, 12 * kMiB, 2) == 0);
  for (void* block : {a, b, c}) rig.free(block);
}

}  // namespace cistern::test
