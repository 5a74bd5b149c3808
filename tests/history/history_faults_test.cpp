// Histories while the device refuses, and while requests fail.
#include <new>
#include <random>

#include "tests/history/history_support.hpp"
#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::test {
namespace {

void stormWithFaults(const char* conf, unsigned seed) {
  SimRig rig(conf, simOf(128 * kMiB, 10'000));
  const Streams streams(rig.allocator, 2);
  rig.allocator.recordHistory({});
  rig.sim().faults().failRandomly(0.1, seed);
  std::mt19937 random{seed};
  std::vector<void*> held;
  for (int step = 0; step < 400; ++step) {
    try {
      held.push_back(rig.allocator.allocate(1 + random() % (6 * kMiB), streams[random() % 2]));
      if (step % 3 == 0) rig.allocator.recordStream(held.back(), streams[random() % 2]);
    } catch (const Error&) {  // refused; nothing has changed
    }
    if (!held.empty() && random() % 2 == 0) {
      rig.allocator.free(held.back());
      held.pop_back();
    }
    if (step % 50 == 0) rig.allocator.emptyCache();
    if (step % 20 == 0) rig.allocator.audit();
  }
  rig.sim().faults().clear();
  CHECK(pictureOf(dumped(rig.allocator)) == pictureOf(rig.allocator.snapshot()));
  for (void* block : held) rig.allocator.free(block);
}

TEST_CASE("a history agrees with the snapshot whatever the device refuses") {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    stormWithFaults("background_thread:false", seed);
    stormWithFaults("backing:segments,background_thread:false", seed);
  }
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)
TEST_CASE("an audit lives with blocks that the host had no memory to note") {
  SimRig rig;
  rig.allocator.free(rig.allocator.allocate(4 * kMiB, Stream{}));
  rig.allocator.recordHistory({});
  void* lost = nullptr;
  {
    const AtHostAllocations refuse([] { throw std::bad_alloc(); });
    lost = rig.allocator.allocate(kMiB + 1, Stream{});
  }
  rig.allocator.audit();
  void* const noted = rig.allocator.allocate(kMiB + 1, Stream{});
  rig.allocator.audit();
  CHECK(pictureOf(dumped(rig.allocator)).living.size() == 1);
  rig.allocator.free(lost);
  rig.allocator.audit();
  rig.allocator.free(noted);
}
#endif

}  // namespace
}  // namespace cistern::test
