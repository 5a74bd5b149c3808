// What stays while a pool sleeps, which bytes are kept, who is waited for, and hooks.
#include <csignal>
#include <utility>

#include "tests/pools/sleep_support.hpp"
#include "tests/support/child_process.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kEdgeBytes = 4 * kMiB;

std::uint64_t reservedIn(SleepRig& rig) { return std::uint64_t(rig.reservedBy(rig.id())); }

}  // namespace

// ---- What stays ---------------------------------------------------------------------------------

TEST_CASE("memory that is exported stays, and the report names it", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const a = rig.filled(24 * kMiB, 1);
  void* const b = rig.filled(24 * kMiB, 2);
  const std::uint64_t before = reservedIn(rig);
  auto exported = rig.allocator.exportBlock(a);
  const SleepReport report = rig.pools.sleep({rig.id()});
  rig.audit();
  CHECK(report.released + report.stayed == before);
  CHECK(report.stayed >= 24 * kMiB);
  CHECK(report.released >= 16 * kMiB);
  CHECK(rig.taken() == report.stayed);
  REQUIRE_FALSE(report.why.empty());
  for (const StayedMemory& stayed : report.why) {
    CHECK(stayed.why == WhyStayed::kExported);
    CHECK(stayed.pool == rig.id());
  }
  CHECK(report.why.front().address == toAddress(exported->base));
  CHECK(report.text().find("exported") != std::string::npos);
  CHECK(rig.wrong(a, 24 * kMiB, 1) == 0);  // it can be used all the same
  exported = nullptr;
  (void)rig.pools.wake({rig.id()});
  rig.audit();
  CHECK(rig.wrong(a, 24 * kMiB, 1) == 0);
  CHECK(rig.wrong(b, 24 * kMiB, 2) == 0);
  rig.free(a);
  rig.free(b);
}

TEST_CASE("an exported block that is freed while its pool sleeps is free after wake",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const a = rig.filled(24 * kMiB, 1);
  void* const b = rig.filled(24 * kMiB, 2);
  auto exported = rig.allocator.exportBlock(a);
  (void)rig.pools.sleep({rig.id()});
  rig.free(a);
  rig.audit();
  exported = nullptr;
  rig.audit();
  (void)rig.pools.wake({rig.id()});
  rig.audit();
  CHECK(rig.wrong(b, 24 * kMiB, 2) == 0);
  rig.free(b);
  rig.finish();
  rig.pool.emptyCache();
  CHECK(rig.taken() == 0);
}

TEST_CASE("memory that the default pool has borrowed stays", "[pools][sleep][pages]") {
  SleepRig rig(simOf(kGiB), "limit:64M,page_size:2M");
  rig.pools.setUseOnOOM(rig.id(), true);
  std::vector<void*> held;  // every other one: no page is wholly free
  for (std::uint32_t i = 0; i < 64; ++i) held.push_back(rig.filled(kMiB, i));
  for (std::size_t i = 0; i < held.size(); i += 2) rig.free(std::exchange(held[i], nullptr));
  rig.finish();
  void* const borrowed = rig.allocate(kMiB, rig.s);
  rig.work.fill(rig.s, toAddress(borrowed), kMiB, 100);
  const std::uint64_t before = reservedIn(rig);
  REQUIRE(before == 64 * kMiB);
  const SleepReport report = rig.pools.sleep({rig.id()});
  rig.audit();
  CHECK(report.released + report.stayed == before);
  REQUIRE_FALSE(report.why.empty());
  for (const StayedMemory& stayed : report.why) CHECK(stayed.why == WhyStayed::kLent);
  CHECK(rig.wrong(borrowed, kMiB, 100) == 0);
  rig.free(borrowed);
  rig.audit();
  (void)rig.pools.wake({rig.id()});
  for (std::uint32_t i = 1; i < 64; i += 2) {
    CHECK(rig.wrong(held[i], kMiB, i) == 0);
    rig.free(held[i]);
  }
}

TEST_CASE("pages that the device does not take stay, and are the pool's again at wake",
          "[pools][sleep][pages]") {
  for (const Call call : {Call::kUnmap, Call::kReleasePage}) {
    SleepRig rig;
    void* const a = rig.filled(40 * kMiB, 1);
    const std::uint64_t before = reservedIn(rig);
    rig.sim().faults().failNth(call, 2, ErrorKind::kOther);
    const SleepReport report = rig.pools.sleep({rig.id()});
    rig.audit();
    CHECK(report.released + report.stayed == before);
    CHECK(report.why.size() == 1);
    CHECK(report.why.front().why == WhyStayed::kRefused);
    CHECK(rig.taken() == report.stayed);
    (void)rig.pools.wake({rig.id()});
    rig.audit();
    CHECK(rig.taken() == before);
    CHECK(rig.wrong(a, 40 * kMiB, 1) == 0);
    rig.free(a);
  }
}

// ---- Contents -----------------------------------------------------------------------------------

TEST_CASE("contents are saved, dropped or zero, as was asked for each block",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const saved = rig.filled(kEdgeBytes, 1);
  void* const dropped = rig.filled(64 * kMiB, 2);
  void* const zeroed = rig.filled(kEdgeBytes, 3);
  rig.pools.setContents(dropped, Contents::kDrop);
  rig.pools.setContents(zeroed, Contents::kZero);
  CHECK(rig.pools.sleep({rig.id()}).live == kEdgeBytes);
  (void)rig.pools.wake({rig.id()});
  CHECK(rig.wrong(saved, kEdgeBytes, 1) == 0);
  CHECK(rig.wrong(zeroed, kEdgeBytes, 0) == kEdgeBytes / 4 - 1);  // but for the first word
  rig.pools.setContents(saved, Contents::kSave);
  CHECK(rig.pools.sleep({rig.id()}, Contents::kDrop).live == kEdgeBytes);
  (void)rig.pools.wake({rig.id()});
  CHECK(rig.wrong(saved, kEdgeBytes, 1) == 0);
  // Until its free: another block at the address is as any other.
  rig.free(saved);
  void* const again = rig.filled(kEdgeBytes, 5);
  REQUIRE(again == saved);
  CHECK(rig.pools.sleep({rig.id()}, Contents::kDrop).live == 0);
  (void)rig.pools.wake({rig.id()});
  for (void* block : {again, dropped, zeroed}) rig.free(block);
}

TEST_CASE("contents are set for blocks of pools that can sleep", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const block = rig.allocate(kEdgeBytes, rig.s);
  CHECK_THROWS_AS(rig.pools.setContents(block, Contents::kDrop), InvalidArgument);
  CHECK_THROWS_AS(rig.pools.setContents(&rig, Contents::kDrop), InvalidArgument);
  rig.free(block);
}

TEST_CASE("a zeroed block among saved ones is zero, though gaps are copied along",
          "[pools][sleep][pages]") {
  SleepRig rig;
  std::vector<void*> blocks;
  for (std::uint32_t i = 0; i < 100; ++i)
    blocks.push_back(rig.filled(i % 2 ? 4'096 : 256 * kKiB, i));
  for (std::uint32_t i = 1; i < 100; i += 2) rig.pools.setContents(blocks[i], Contents::kZero);
  const SleepReport report = rig.pools.sleep({rig.id()});
  CHECK(report.live == 50 * 256 * kKiB);
  CHECK(report.saved > report.live);
  CHECK(report.saved <= report.live * 105 / 100);
  CHECK(countOf(rig.sim(), Call::kCopyOut) < 50);
  (void)rig.pools.wake({rig.id()});
  for (std::uint32_t i = 0; i < 100; ++i) {
    if (i % 2 == 0) CHECK(rig.wrong(blocks[i], 256 * kKiB, i) == 0);
    if (i % 2 != 0) CHECK(rig.wrong(blocks[i], 4'096, 0) == 4'096 / 4 - 1);
    rig.free(blocks[i]);
  }
}

// ---- Who is waited for --------------------------------------------------------------------------

TEST_CASE("sleep waits for the stream named, and for all that own, recorded or replayed",
          "[pools][sleep][pages]") {
  SleepRig rig(simOf(kGiB, 5'000'000));
  const Stream after = rig.stream(), recorded = rig.stream(), owner = rig.stream(),
               replayed = rig.stream();
  void* const a = rig.filled(kEdgeBytes, 1);
  void* const b = rig.filled(kEdgeBytes, 2, owner);
  void* const c = rig.filled(kEdgeBytes, 3);
  Graph graph(rig.pools);
  {
    GraphCapture capture(graph, rig.s, rig.id());
    rig.work.fill(rig.s, toAddress(a), kEdgeBytes, 7);
    rig.free(rig.written(kEdgeBytes, rig.s));
    capture.end();
  }
  rig.allocator.recordStream(b, recorded);
  rig.join(recorded, owner);
  rig.work.fill(recorded, toAddress(b), kEdgeBytes, 8);
  rig.join(replayed, rig.s);
  graph.replay(replayed);
  rig.join(after, rig.s);
  rig.work.fill(after, toAddress(c), kEdgeBytes, 9);  // nobody has said so
  const std::uint64_t waits = countOf(rig.sim(), Call::kSynchronizeDevice);
  (void)rig.pools.sleep({rig.id()}, after);
  CHECK(countOf(rig.sim(), Call::kSynchronizeDevice) == waits);
  (void)rig.pools.wake({rig.id()});
  CHECK(rig.wrong(a, kEdgeBytes, 7) == 0);
  CHECK(rig.wrong(b, kEdgeBytes, 8) == 0);
  CHECK(rig.wrong(c, kEdgeBytes, 9) == 0);
  for (void* block : {a, b, c}) rig.free(block);
}

TEST_CASE("a page that has moved is not unmapped where work still uses it",
          "[pools][sleep][pages]") {
  SleepRig rig(simOf(kGiB, 5'000'000), "page_size:2M");
  const Stream untold = rig.stream();
  rig.allocator.registerStream(untold);
  void* const a = rig.filled(16 * kMiB, 1);
  void* const beside = rig.filled(4 * kMiB, 2);
  rig.join(untold, rig.s);
  rig.touch(untold, a);
  rig.free(a);
  const std::uint64_t recycled = rig.allocator.memoryStats().pages.recycled;
  void* const wide = rig.pool.allocate(32 * kMiB, rig.s);  // nothing has used it yet
  REQUIRE(rig.allocator.memoryStats().pages.recycled > recycled);
  const std::uint64_t waited = countOf(rig.sim(), Call::kSynchronizeDevice);
  (void)rig.pools.sleep({rig.id()}, rig.s, Contents::kDrop);
  CHECK(countOf(rig.sim(), Call::kSynchronizeDevice) > waited);
  CHECK(rig.sim().races().empty());
  (void)rig.pools.wake({rig.id()});
  rig.free(wide);
  rig.free(beside);
}

TEST_CASE("a use that is ordered before no stream that sleep waits for is a race",
          "[pools][sleep][pages]") {
  SleepRig rig(simOf(kGiB, 5'000'000));
  const Stream untold = rig.stream();
  void* const a = rig.filled(kEdgeBytes, 1);
  rig.join(untold, rig.s);
  rig.touch(untold, a);
  (void)rig.pools.sleep({rig.id()}, rig.s);
  CHECK_FALSE(rig.sim().races().empty());
  rig.sim().clearRaces();
  (void)rig.pools.wake({rig.id()});
  rig.free(a);
}

TEST_CASE("a use while the pool sleeps is an error of the program's", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const a = rig.filled(kEdgeBytes, 1);
  (void)rig.pools.sleep({rig.id()});
  CHECK_THROWS_AS(rig.touch(rig.s, a), DeviceFailure);
  CHECK(rig.sim().races().size() == 1);
  rig.sim().clearRaces();
  (void)rig.pools.wake({rig.id()});
  rig.free(a);
}

TEST_CASE("pools of streams that are gone sleep and wake", "[pools][sleep][pages]") {
  for (const bool forgotten : {false, true}) {
    for (const bool whole : {false, true}) {
      SleepRig rig;
      const Stream gone = rig.stream();
      void* const a = rig.filled(kEdgeBytes, 1, gone);
      void* const b = rig.filled(kEdgeBytes, 2);
      if (forgotten) rig.allocator.forgetStream(gone);
      rig.sim().destroyStream(gone).orThrow();
      (void)(whole ? rig.pools.sleep({rig.id()}) : rig.pools.sleep({rig.id()}, rig.s));
      CHECK(rig.taken() == 0);
      (void)rig.pools.wake({rig.id()});
      CHECK(rig.wrong(a, kEdgeBytes, 1) == 0);
      CHECK(rig.wrong(b, kEdgeBytes, 2) == 0);
      rig.free(a);
      rig.free(b);
    }
  }
}

TEST_CASE("a block that waits for another stream when its pool falls asleep is gone at wake",
          "[pools][sleep][pages]") {
  SleepRig rig(simOf(kGiB, 5'000'000));
  const Stream other = rig.stream();
  void* const a = rig.filled(kEdgeBytes, 1);
  void* const b = rig.filled(kEdgeBytes, 2);
  rig.allocator.recordStream(a, other);
  rig.join(other, rig.s);
  rig.touch(other, a);
  rig.free(a);
  CHECK(rig.pools.sleep({rig.id()}, rig.s).live == kEdgeBytes);
  (void)rig.pools.wake({rig.id()});
  CHECK(rig.wrong(b, kEdgeBytes, 2) == 0);
  rig.free(b);
}

TEST_CASE("devices that were admitted reach the memory after wake", "[pools][sleep][pages]") {
  sim::SimConfig config = simOf(kGiB);
  config.peers = {1};
  SleepRig rig(config);
  void* const a = rig.filled(kEdgeBytes, 1);
  rig.allocator.enablePeerAccess(1);
  (void)rig.pools.sleep({rig.id()});
  CHECK_FALSE(rig.sim().peerReaches(1, toAddress(a), kEdgeBytes));
  (void)rig.pools.wake({rig.id()});
  CHECK(rig.sim().peerReaches(1, toAddress(a), kEdgeBytes));
  rig.free(a);
}

// ---- Host memory --------------------------------------------------------------------------------

TEST_CASE("a sleep that the host has no room for leaves the pools awake", "[pools][sleep][pages]") {
  sim::SimConfig config = simOf(kGiB);
  config.pinned_capacity = 20 * kMiB;
  SleepRig rig(config);
  void* const a = rig.filled(24 * kMiB, 1);
  const std::string why = refusalOf<HostShortage>([&] { (void)rig.pools.sleep({rig.id()}); });
  CHECK(why.find("24.00 MiB") != std::string::npos);
  CHECK(why.find("20.00 MiB") != std::string::npos);
  CHECK(countOf(rig.sim(), Call::kHostMalloc) == 0);  // it was asked before
  CHECK_FALSE(rig.pools.isAsleep(rig.id()));
  rig.audit();
  CHECK(rig.wrong(a, 24 * kMiB, 1) == 0);
  void* const b = rig.filled(8 * kMiB, 2);
  CHECK(rig.pools.sleep({rig.id()}, Contents::kDrop).saved == 0);
  (void)rig.pools.wake({rig.id()});
  rig.free(a);
  rig.free(b);
}

TEST_CASE("pinned memory is kept for the next sleep, or given back", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const a = rig.filled(24 * kMiB, 1);
  CHECK(rig.pools.sleep({rig.id()}).pinned_anew >= 24 * kMiB);
  const WakeReport kept = rig.pools.wake({rig.id()});
  CHECK(kept.pinned >= 24 * kMiB);
  CHECK(kept.resident > 0);
  CHECK(rig.pools.sleep({rig.id()}).pinned_anew == 0);
  CHECK(rig.pools.wake({rig.id()}, HostMemory::kGiveBack).pinned == 0);
  CHECK(rig.sim().pinnableBytes() == UINT64_MAX);
  (void)rig.pools.sleep({rig.id()});
  (void)rig.pools.wake({rig.id()});
  rig.pools.trimHostMemory();
  CHECK(rig.sim().pinnableBytes() == UINT64_MAX);
  CHECK(rig.wrong(a, 24 * kMiB, 1) == 0);
  rig.free(a);
}

TEST_CASE("a wake that does not fit leaves the pools asleep and says who has the memory",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const a = rig.filled(600 * kMiB, 1);
  (void)rig.pools.sleep({rig.id()});
  void* const large = rig.allocate(700 * kMiB, rig.s);
  rig.touch(rig.s, large);
  bool thrown = false;
  try {
    (void)rig.pools.wake({rig.id()});
  } catch (const OutOfMemory& error) {
    thrown = true;
    CHECK(error.report().pool == rig.id());
    CHECK(error.report().requested >= 600 * kMiB - 324 * kMiB);
    REQUIRE_FALSE(error.report().holders.empty());
    CHECK(error.report().holders.front().address == toAddress(large));
  }
  CHECK(thrown);
  CHECK(rig.pools.isAsleep(rig.id()));
  CHECK(rig.taken() < 720 * kMiB);
  rig.audit();
  rig.free(large);
  (void)rig.pools.wake({rig.id()});  // what lies free goes back
  CHECK(rig.wrong(a, 600 * kMiB, 1) == 0);
  rig.free(a);
}

// ---- Hooks, other processes, the end ------------------------------------------------------------

TEST_CASE("hooks are called before and after, and may refuse", "[pools][sleep][pages]") {
  SleepRig rig;
  void* const a = rig.filled(kEdgeBytes, 1);
  std::vector<SleepMoment> moments;
  bool refuse = false;
  const HookId hook = rig.pools.attachSleepHook([&](const SleepNotice& notice) {
    CHECK(notice.pools == std::vector<MempoolId_t>{rig.id()});
    moments.push_back(notice.moment);
    if (refuse) throw InvalidArgument("not now");
    const bool asleep =
        notice.moment == SleepMoment::kAfterSleep || notice.moment == SleepMoment::kBeforeWake;
    CHECK(rig.pools.isAsleep(rig.id()) == asleep);
    rig.free(rig.allocate(kEdgeBytes, rig.s));  // no lock is held
  });
  (void)rig.pools.sleep({rig.id()});
  (void)rig.pools.wake({rig.id()});
  CHECK(moments == std::vector{SleepMoment::kBeforeSleep, SleepMoment::kAfterSleep,
                               SleepMoment::kBeforeWake, SleepMoment::kAfterWake});
  refuse = true;
  CHECK_THROWS_AS(rig.pools.sleep({rig.id()}), InvalidArgument);
  CHECK_FALSE(rig.pools.isAsleep(rig.id()));
  refuse = false;
  moments.clear();
  rig.sim().faults().failAll(Call::kCopyOut);
  CHECK_THROWS_AS(rig.pools.sleep({rig.id()}), DeviceFailure);
  rig.sim().faults().clear();
  CHECK(moments == std::vector{SleepMoment::kBeforeSleep, SleepMoment::kAfterWake});
  rig.allocator.detach(hook);
  rig.free(a);
}

TEST_CASE("an allocator may end while pools sleep", "[pools][sleep][pages]") {
  SimWork work(simOf(kGiB));
  {
    CachingAllocator allocator(work.device(), optionsOf());
    Pools pools(allocator);
    const Stream s = work.sim().createStream().orThrow();
    auto pool = std::make_unique<MemPool>(pools);
    (void)pool->allocate(20 * kMiB, s);
    work.sim().faults().failNth(Call::kReleasePage, 2);
    (void)pools.sleep({pool->id()});
  }
  CHECK(takenOf(work.sim()) == 0);
  CHECK(work.sim().pinnableBytes() == UINT64_MAX);
  work.sim().audit();
}

TEST_CASE("a child of fork may not wake its parent's pools, and can exit",
          "[pools][sleep][pages]") {
  SleepRig rig;
  void* const a = rig.filled(kEdgeBytes, 1);
  (void)rig.pools.sleep({rig.id()});
  const int status = statusOfChild([&] {
    const bool wake = refusalOf<Error>([&] { (void)rig.pools.wake({rig.id()}); }).empty();
    const bool sleep = refusalOf<Error>([&] { (void)rig.pools.sleep({rig.id()}); }).empty();
    _exit(wake || sleep ? 1 : 0);
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  (void)rig.pools.wake({rig.id()});
  CHECK(rig.wrong(a, kEdgeBytes, 1) == 0);
  rig.free(a);
}

}  // namespace cistern::test
