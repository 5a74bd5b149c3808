// Many device calls fail, at random or for good: when that is over, all is as if they had not.
#include "tests/engine/pages/pages_support.hpp"

namespace cistern::test {
namespace {

constexpr const char* kByHand = "recycle:eager,background_thread:false";

// All of the device can be had, and be given back.
void checkRecovered(SimRig& rig, Stream stream, std::uint64_t capacity) {
  rig.sim().faults().clear();
  void* all = nullptr;
  CHECK_NOTHROW(all = rig.allocator.allocate(capacity, stream));
  if (all) rig.touch(stream, all);
  rig.allocator.free(all);
  rig.sim().synchronizeDevice().orThrow();
  rig.allocator.emptyCache();
  checkAtRest(rig);
  CHECK(takenOf(rig.sim()) == 0);
}

// Every block is used on its stream and freed in the end.
void churnInTrouble(SimRig& rig, const Streams& streams, int steps) {
  std::vector<void*> held;
  for (std::size_t i = 0; i < std::size_t(steps); ++i) {
    const Stream stream = streams[i % streams.size()];
    try {
      held.push_back(rig.allocator.allocate((i % 7) * 2 * kMiB + kKiB, stream));
      rig.touch(stream, held.back());
    } catch (const OutOfMemory&) {
    }
    if (i % 2 == 0 && !held.empty()) {
      std::swap(held[i % held.size()], held.back());
      rig.allocator.free(held.back());
      held.pop_back();
    }
    if (i % 50 == 49) rig.allocator.emptyCache();
    if (i % 16 == 0) rig.allocator.audit();
  }
  for (void* block : held) rig.allocator.free(block);
}

}  // namespace

TEST_CASE("after calls that failed at random all memory is found again", "[engine][pages][long]") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    SimRig rig(kByHand, simOf(64 * kMiB, 20'000));
    const Streams streams(rig.allocator, 3);
    rig.sim().faults().failRandomly(0.05 * double(1 + seed % 6), seed);
    churnInTrouble(rig, streams, 200);
    checkRecovered(rig, streams[0], 64 * kMiB);
  }
}

TEST_CASE("after every call of one kind has failed for a while all memory is found again",
          "[engine][pages]") {
  for (Call call : {Call::kReserve, Call::kCreatePage, Call::kReleasePage, Call::kMap,
                    Call::kSetAccess, Call::kUnmap, Call::kCreateEvent, Call::kRecordEvent,
                    Call::kQueryEvent, Call::kQueryStream, Call::kWaitEvent}) {
    INFO(callName(call));
    SimRig rig(kByHand, simOf(64 * kMiB, 20'000));
    const Streams streams(rig.allocator, 3);
    churnInTrouble(rig, streams, 60);
    rig.sim().faults().failAll(call);
    churnInTrouble(rig, streams, 60);
    checkRecovered(rig, streams[0], 64 * kMiB);
  }
}

TEST_CASE("a page that could be neither given access nor unmapped is not in the way",
          "[engine][pages]") {
  SimRig rig(kByHand, simOf(64 * kMiB));
  void* held = rig.allocator.allocate(4 * kMiB);
  void* freed = rig.allocator.allocate(20 * kMiB);
  rig.allocator.free(rig.allocator.allocate(2 * kMiB));
  rig.allocator.free(freed);
  rig.sim().faults().failAll(Call::kSetAccess);
  rig.sim().faults().failAll(Call::kUnmap);
  CHECK_THROWS_AS(rig.allocator.allocate(40 * kMiB), OutOfMemory);
  rig.sim().faults().clear();
  void* block = nullptr;
  CHECK_NOTHROW(block = rig.allocator.allocate(60 * kMiB));
  if (block) rig.touch({}, block);
  rig.touch({}, held);
  checkAtRest(rig);
}

TEST_CASE("what the device does not take back stays reserved, and goes when it is asked again",
          "[engine][pages]") {
  SimRig rig(kByHand, simOf(64 * kMiB));
  for (Call call : {Call::kReleasePage, Call::kUnmap}) {
    INFO(callName(call));
    for (const bool needed : {false, true}) {
      rig.allocator.free(rig.allocator.allocate(30 * kMiB));
      rig.sim().faults().failAll(call);
      rig.allocator.emptyCache();
      CHECK(takenOf(rig.sim()) == 30 * kMiB);
      checkAtRest(rig);
      rig.sim().faults().clear();
      if (needed) rig.allocator.free(rig.allocator.allocate(60 * kMiB));
      rig.allocator.emptyCache();
      CHECK(takenOf(rig.sim()) == 0);
    }
  }
}

}  // namespace cistern::test
