// The option keep_ms, and what it does each time.
#include <chrono>
#include <thread>

#include "allocator/engine/exchange/exchange.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

std::uint64_t reserved(const CachingAllocator& allocator) {
  return std::uint64_t(allocator.memoryStats()[Stat::kReservedBytes].current);
}

}  // namespace

TEST_CASE("what a peak left goes back, and what is used between two looks stays",
          "[engine][pages]") {
  SimRig rig;
  Engine& engine = rig.allocator.engine();
  const Stream s = rig.stream();
  UnusedSince last;
  const auto use = [&](std::size_t bytes) {
    void* const block = rig.allocator.allocate(bytes, s);
    rig.touch(s, block);
    rig.allocator.free(block);
  };
  void* const held = rig.allocator.allocate(20 * kMiB, s);
  use(300 * kMiB);
  giveBackUnused(engine, last);
  CHECK(reserved(rig.allocator) >= 320 * kMiB);  // it was used a moment ago
  for (int look = 0; look < 5; ++look) {
    use(40 * kMiB);
    rig.sim().synchronizeDevice().orThrow();
    giveBackUnused(engine, last);
    CHECK(reserved(rig.allocator) >= 60 * kMiB);
  }
  CHECK(reserved(rig.allocator) < 120 * kMiB);
  giveBackUnused(engine, last);
  CHECK(reserved(rig.allocator) < 30 * kMiB);
  rig.allocator.free(held);
  rig.sim().synchronizeDevice().orThrow();
  giveBackUnused(engine, last);
  giveBackUnused(engine, last);
  CHECK(takenOf(rig.sim()) == 0);
  use(300 * kMiB);
}

TEST_CASE("with keep_ms memory goes back by itself, beside threads that allocate",
          "[engine][threads]") {
  SimRig rig("keep_ms:1");
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const Stream s = rig.stream();
      for (int round = 0; round < 300; ++round) {
        void* const block = rig.allocator.allocate(std::size_t(1 + round % 30) * kMiB, s);
        rig.touch(s, block);
        rig.allocator.free(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  rig.sim().synchronizeDevice().orThrow();
  while (takenOf(rig.sim()) > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(reserved(rig.allocator) == 0);
  rig.allocator.free(rig.allocator.allocate(kMiB, rig.stream()));
}

}  // namespace cistern::test
