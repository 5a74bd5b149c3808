// Hooks for memory that comes and goes, where pools sleep and wake.
#include "tests/pools/pools_support.hpp"
#include "tests/support/mirrored_device.hpp"

namespace cistern::test {
namespace {

struct SleepingRig {
  SleepingRig()
      : work(simOf(256 * kMiB)),
        device(work.device()),
        allocator(device, optionsOf("background_thread:false")),
        pools(allocator),
        pool(pools) {
    allocator.attachMemoryHook(device.hook());
  }
  ~SleepingRig() {
    allocator.audit();
    CHECK(device.wrong() == 0);
  }
  void checkMirror() { CHECK(device.heard() == device.there()); }

  SimWork work;
  MirroredDevice device;
  CachingAllocator allocator;
  Pools pools;
  MemPool pool;
};

}  // namespace

TEST_CASE("hooks hear of memory that goes for a sleep, and comes at the wake",
          "[pools][pages][hooks]") {
  SleepingRig rig;
  void* const kept = rig.pool.allocate(20 * kMiB, {});
  void* const freed = rig.pool.allocate(30 * kMiB, {});
  rig.work.fill({}, toAddress(kept), 20 * kMiB, 1);
  rig.allocator.free(freed);
  for (int i = 0; i < 3; ++i) {
    rig.pools.sleep({rig.pool.id()}, Contents::kSave);
    rig.checkMirror();
    CHECK(rig.device.there().empty());
    rig.pools.wake({rig.pool.id()});
    rig.checkMirror();
    CHECK(!rig.device.there().empty());
  }
  rig.work.verify({}, toAddress(kept), 20 * kMiB, 1);
  CHECK(rig.work.mismatches() == 0);
  rig.allocator.free(kept);
}

TEST_CASE("a pool that sleeps and wakes inside a hook keeps its memory", "[pools][pages][hooks]") {
  int times = 0;
  SleepingRig rig;
  void* const block = rig.pool.allocate(20 * kMiB, {});
  rig.work.fill({}, toAddress(block), 20 * kMiB, 1);
  void* const other = rig.allocator.allocate(40 * kMiB, {});
  rig.allocator.attachMemoryHook([&](const MemoryNotice& notice) {
    if (notice.change == MemoryChange::kMapped || ++times > 2) return;
    rig.pools.sleep({rig.pool.id()}, Contents::kSave);
    rig.pools.wake({rig.pool.id()});
    if (times == 2) rig.pools.sleep({rig.pool.id()}, Contents::kSave);
  });
  rig.allocator.free(other);
  rig.allocator.emptyCache();
  rig.checkMirror();
  rig.pools.wake({rig.pool.id()});
  rig.checkMirror();
  rig.work.verify({}, toAddress(block), 20 * kMiB, 1);
  CHECK(rig.work.mismatches() == 0);
  rig.allocator.free(block);
}

TEST_CASE("a wake that has no room waits for hooks to hear of memory that goes",
          "[pools][pages][hooks]") {
  SleepingRig rig;
  void* const block = rig.pool.allocate(150 * kMiB, {});
  rig.pools.sleep({rig.pool.id()}, Contents::kDrop);
  rig.allocator.free(rig.allocator.allocate(200 * kMiB, {}));
  rig.pools.wake({rig.pool.id()});
  rig.checkMirror();
  rig.allocator.free(block);
}

}  // namespace cistern::test
