// What the program can give up when memory is short: when it is asked, what it is told, how often.
#include <atomic>
#include <thread>

#include "allocator/engine/engine.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

/// Blocks that the program could do without.
struct Spare {
  Spare(SimRig& rig, int count, std::size_t bytes) : allocator(rig.allocator) {
    for (int i = 0; i < count; ++i) blocks.push_back(allocator.allocate(bytes));
  }
  ~Spare() {
    while (giveUp()) {
    }
  }
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  bool giveUp() {
    if (blocks.empty()) return false;
    allocator.free(blocks.back());
    blocks.pop_back();
    return true;
  }
  CachingAllocator& allocator;
  std::vector<void*> blocks;
};

}  // namespace

TEST_CASE("a reclaim callback is not called while the device has memory", "[engine]") {
  SimRig rig;
  int calls = 0;
  rig.allocator.registerReclaimCallback([&] { return ++calls > 0; });
  for (int i = 0; i < 40; ++i) (void)rig.allocator.allocate(20 * kMiB);
  CHECK(calls == 0);
}

TEST_CASE("a reclaim callback is called until the request is served", "[engine]") {
  SimRig rig("limit:128MiB");
  Spare spare(rig, 100, kMiB + kKiB);
  std::vector<MemoryShortage> told;
  rig.allocator.registerReclaimCallback([&](const MemoryShortage& shortage) {
    told.push_back(shortage);
    return spare.giveUp();
  });
  void* const block = rig.allocator.allocate(60 * kMiB);
  REQUIRE(!told.empty());
  CHECK(spare.blocks.size() > 30);  // no more than need be
  for (std::size_t i = 0; i < told.size(); ++i) {
    CHECK(told[i].attempt == i + 1);
    CHECK(told[i].requested == 60 * kMiB);
    CHECK(told[i].stream == Stream{});
    CHECK(told[i].missing > 0);
    CHECK(told[i].missing <= 60 * kMiB);
  }
  REQUIRE(told.size() > 1);
  CHECK(told[0].missing - told[1].missing == kMiB + kKiB);
  rig.allocator.free(block);
}

TEST_CASE("a reclaim callback is told how much is missing", "[engine]") {
  SimRig rig("limit:100MiB");
  void* held = rig.allocator.allocate(60 * kMiB);
  std::vector<std::uint64_t> missing;
  rig.allocator.registerReclaimCallback([&](const MemoryShortage& shortage) {
    missing.push_back(shortage.missing);
    return false;
  });
  CHECK_THROWS_AS(rig.allocator.allocate(50 * kMiB), OutOfMemory);
  rig.allocator.setLimit(40 * kMiB);
  CHECK_THROWS_AS(rig.allocator.allocate(50 * kMiB), OutOfMemory);
  rig.allocator.setLimit(kGiB);
  rig.sim().foreignUse(kGiB - 70 * kMiB);
  CHECK_THROWS_AS(rig.allocator.allocate(50 * kMiB), OutOfMemory);
  CHECK(missing == std::vector<std::uint64_t>{10 * kMiB, 70 * kMiB, 40 * kMiB});
  rig.allocator.free(held);
}

TEST_CASE("a reclaim callback comes after what the allocator has cached", "[engine]") {
  SimRig rig("limit:100MiB");
  int calls = 0;
  rig.allocator.registerReclaimCallback([&] { return ++calls > 0; });
  const Stream other = rig.stream();
  void* const cached = rig.allocator.allocate(70 * kMiB, other);
  rig.touch(other, cached);
  rig.work.delay(other, kLongNs);
  rig.allocator.free(cached);
  rig.allocator.free(rig.allocator.allocate(80 * kMiB));
  CHECK(calls == 0);
}

TEST_CASE("a callback that claims to free something and does not is not called for ever",
          "[engine]") {
  SimRig rig("limit:64MiB");
  void* held = rig.allocator.allocate(40 * kMiB);
  int calls = 0;
  rig.allocator.registerReclaimCallback([&] { return ++calls > 0; });
  CHECK_THROWS_AS(rig.allocator.allocate(40 * kMiB), OutOfMemory);
  CHECK(calls == 1);
  rig.allocator.free(held);
}

TEST_CASE("what a callback gives up elsewhere on the device counts", "[engine]") {
  SimRig rig("", simOf(64 * kMiB));
  std::uint64_t foreign = 60 * kMiB;
  rig.sim().foreignUse(foreign);
  int calls = 0;
  rig.allocator.registerReclaimCallback([&] {
    ++calls;
    if (foreign == 0) return false;
    rig.sim().foreignUse(foreign -= 10 * kMiB);
    return true;
  });
  rig.allocator.free(rig.allocator.allocate(40 * kMiB));
  CHECK(calls == 4);
}

TEST_CASE("callbacks and observers are called until they are detached", "[engine]") {
  SimRig rig("limit:64MiB");
  CachingAllocator& allocator = rig.allocator;
  int reclaimed = 0, kept = 0, observed = 0;
  const HookId first = allocator.registerReclaimCallback([&] { return ++reclaimed < 0; });
  const HookId second =
      allocator.registerReclaimCallback([&](const MemoryShortage&) { return ++kept < 0; });
  const HookId third =
      allocator.attachOutOfMemoryObserver([&](const OutOfMemoryReport&) { ++observed; });
  const HookId fourth = allocator.attachPoolReleasedObserver([](MempoolId_t) {});
  const auto runShort = [&] { CHECK_THROWS_AS(allocator.allocate(70 * kMiB), OutOfMemory); };
  runShort();
  allocator.detach(first);
  runShort();
  allocator.detach(third);
  allocator.detach(fourth);
  runShort();
  CHECK(reclaimed == 1);
  CHECK(kept == 3);
  CHECK(observed == 2);
  CHECK_THROWS_AS(allocator.detach(first), InvalidArgument);
  CHECK_THROWS_AS(allocator.detach(HookId{}), InvalidArgument);
  SimRig other;
  CHECK_THROWS_AS(other.allocator.detach(second), InvalidArgument);
  allocator.detach(second);
  runShort();
  CHECK(kept == 3);
}

TEST_CASE("a callback may detach itself", "[engine]") {
  SimRig rig("limit:64MiB");
  int calls = 0;
  HookId own;
  own = rig.allocator.registerReclaimCallback([&] {
    rig.allocator.detach(own);
    return ++calls < 0;
  });
  for (int i = 0; i < 3; ++i) CHECK_THROWS_AS(rig.allocator.allocate(70 * kMiB), OutOfMemory);
  CHECK(calls == 1);
}

TEST_CASE("detach returns when no other thread is in the callback", "[engine][threads]") {
  SimRig rig("limit:64MiB");
  std::atomic<bool> inside{false}, may_leave{false}, left{false}, detached{false};
  bool had_left = false, detached_within = false;
  const HookId hook = rig.allocator.registerReclaimCallback([&] {
    inside = true;
    while (!may_leave) std::this_thread::yield();
    detached_within = detached;
    left = true;
    return false;
  });
  std::thread asking([&] {
    try {
      (void)rig.allocator.allocate(70 * kMiB);
    } catch (const OutOfMemory&) {
    }
  });
  while (!inside) std::this_thread::yield();
  std::thread detaching([&] {
    rig.allocator.detach(hook);
    had_left = left.load();
    detached = true;
  });
  while (rig.allocator.engine().hooks.reclaim.any()) std::this_thread::yield();
  may_leave = true;
  asking.join();
  detaching.join();
  CHECK(had_left);
  CHECK_FALSE(detached_within);
}

}  // namespace cistern::test
