// Pools sleep and wake while other threads allocate, free, capture and empty caches.
#include <atomic>
#include <utility>

#include "allocator/engine/engine.hpp"
#include "tests/pools/sleep_support.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

struct CountEnd {
  std::atomic<int>& ended;
  ~CountEnd() { ++ended; }
};

}  // namespace

// It sleeps when the miss tidies, and wakes when the program is asked for memory.
TEST_CASE("a request is served though its pool has slept for a moment meanwhile",
          "[pools][sleep][pages]") {
  SleepRig rig;
  bool slept = false, woke = false;
  Hooks& hooks = rig.allocator.engine().hooks;
  ++hooks.untidy;
  const auto tidier = hooks.tidy.add([&](Tidying) {
    if (!std::exchange(slept, true)) (void)rig.pools.sleep({rig.id()});
    return false;
  });
  rig.allocator.registerReclaimCallback([&] {
    if (!std::exchange(woke, true)) (void)rig.pools.wake({rig.id()});
    return false;
  });
  void* const block = rig.filled(3 * kMiB, 1);
  CHECK((slept && woke));
  CHECK(rig.wrong(block, 3 * kMiB, 1) == 0);
  CHECK(rig.allocator.memoryStats().num_ooms == 0);
  rig.free(block);
  (void)hooks.tidy.remove(tidier);
}

// Its callback is asked each time, and must not be asked for ever.
TEST_CASE("a request that no memory is found for is refused, however often its pool has slept",
          "[pools][sleep][pages]") {
  SleepRig rig(simOf(32 * kMiB));
  void* const held = rig.allocate(24 * kMiB, rig.s);
  int asked = 0;
  rig.allocator.registerReclaimCallback([&] {
    ++asked;
    (void)rig.pools.sleep({rig.id()});
    (void)rig.pools.wake({rig.id()});
    return false;
  });
  CHECK_THROWS_AS(rig.pool.allocate(16 * kMiB, rig.s), OutOfMemory);
  CHECK(asked > 1);
  CHECK(asked < 20);
  rig.free(held);
}

TEST_CASE("threads may free in a pool that sleeps, and use others meanwhile",
          "[pools][sleep][pages]") {
  SleepRig rig(simOf(4 * kGiB));
  constexpr int kTimes = 60;
  std::atomic<bool> over{false};
  std::atomic<int> refused{0}, served{0}, ended{0};
  onThreads(4, [&](std::size_t thread) {
    if (thread == 0) {
      for (int round = 0; (round < kTimes || served < 100) && ended == 0; ++round) {
        (void)rig.pools.sleep({rig.id()}, Contents::kDrop);
        (void)rig.pools.wake({rig.id()});
      }
      over = true;
      return;
    }
    const CountEnd count_end{ended};  // also where it throws
    const Stream own = rig.stream();
    MemPool other(rig.pools);
    std::vector<void*> blocks;
    for (std::size_t i = 0; !over; ++i) {
      try {
        blocks.push_back(rig.pool.allocate(((i % 7) * 700 + 4) * kKiB, own));
        ++served;
      } catch (const PoolError&) {
        ++refused;
      }
      rig.free(other.allocate(3 * kMiB, own));
      rig.free(rig.allocate(kMiB, own));
      if (blocks.size() > 12 || (i % 3 == 0 && !blocks.empty())) {
        rig.free(blocks.front());
        blocks.erase(blocks.begin());
      }
      if (i % 16 == 0) rig.pool.emptyCache();
      if (i % 64 == 0) rig.allocator.emptyCache();
    }
    for (void* block : blocks) rig.free(block);
  });
  CHECK(served > 0);
  rig.audit();
  rig.finish();
  rig.allocator.emptyCache();
  CHECK(rig.taken() == 0);
}

TEST_CASE("one thread at a time puts pools to sleep, and each wakes all the same",
          "[pools][sleep][pages]") {
  SleepRig rig(simOf(4 * kGiB));
  std::atomic<int> asleep{0};  // assertions of several threads at once would race
  onThreads(4, [&](std::size_t thread) {
    MemPool own(rig.pools);
    const Stream s = rig.stream();
    void* const block = own.allocate((thread + 1) * 5 * kMiB, s);
    for (int round = 0; round < 30; ++round) {
      (void)rig.pools.sleep({own.id(), rig.id()});
      (void)rig.pools.wake({rig.id()});
      (void)rig.pools.wake({own.id(), rig.id()});
    }
    asleep += rig.pools.isAsleep(own.id());
    rig.free(block);
  });
  CHECK(asleep == 0);
  rig.audit();
}

// What emptyCache could not give back goes when its work is complete: while the sleep waits.
TEST_CASE("what the background gives back while a sleep waits is part of its report",
          "[pools][sleep][pages]") {
  for (int round = 0; round < 20; ++round) {
    SleepRig rig(simOf(kGiB, 1'000'000), "background_thread:true,page_size:8M");
    void* const kept = rig.filled(24 * kMiB, 1);
    void* const freed = rig.filled(24 * kMiB, 2);
    rig.finish();
    rig.touch(rig.s, freed);
    rig.free(freed);
    rig.allocator.emptyCache();
    const auto before = std::uint64_t(rig.reservedBy(rig.id()));
    const SleepReport slept = rig.pools.sleep({rig.id()});
    CHECK(slept.released + slept.stayed == before);
    CHECK(rig.taken() == slept.stayed);
    (void)rig.pools.wake({rig.id()});
    CHECK(rig.wrong(kept, 24 * kMiB, 1) == 0);
    rig.free(kept);
  }
}

}  // namespace cistern::test
