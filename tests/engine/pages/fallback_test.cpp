// Devices that can do less: no virtual memory, other granularities, few addresses.
#include <atomic>

#include "tests/engine/pages/pages_support.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

/// Grows, frees, moves where it can, fills the device, and gives everything back.
void everyday(SimRig& rig) {
  const Stream a = rig.stream(), b = rig.stream();
  void* small = rig.allocator.allocate(kKiB, a);
  void* low = rig.allocator.allocate(20 * kMiB, a);
  void* held = rig.allocator.allocate(2 * kMiB, a);
  void* high = rig.allocator.allocate(20 * kMiB, a);
  for (void* block : {small, low, held, high}) rig.touch(a, block);
  rig.allocator.free(low);
  rig.allocator.free(high);
  void* large = rig.allocator.allocate(200 * kMiB, b);
  rig.touch(b, large);
  rig.allocator.free(large);
  for (void* block : {small, held}) rig.allocator.free(block);
  rig.sim().synchronizeDevice().orThrow();
  rig.touch(a, large = rig.allocator.allocate(240 * kMiB, a));
  rig.allocator.free(large);
  rig.sim().synchronizeDevice().orThrow();
  rig.allocator.emptyCache();
  CHECK(reservedOf(rig.allocator) == 0);
  checkAtRest(rig);
}

/// The steps of virtual memory that a driver may refuse each time, though it claims all of them.
constexpr Call kPageCalls[] = {Call::kReserve, Call::kCreatePage, Call::kMap, Call::kSetAccess};

/// A device that refuses a step from now on is served by segments, and everything in it works.
void checkServedBySegments(SimRig& rig, Call step, ErrorKind kind) {
  INFO(callName(step));
  rig.sim().faults().failAll(step, kind);
  everyday(rig);
  CHECK(countOf(rig.sim(), Call::kMalloc) > 0);
  CHECK(pagesOf(rig.allocator).created == pagesOf(rig.allocator).returned);
  const std::uint64_t asked = mappingCalls(rig.sim());
  everyday(rig);
  CHECK(mappingCalls(rig.sim()) == asked);
}

sim::SimConfig ofGranularity(std::uint64_t granularity) {
  sim::SimConfig config = simOf(256 * kMiB, 20'000);
  config.granularity = granularity;
  return config;
}

}  // namespace

TEST_CASE("a device without virtual memory is served by segments", "[engine][pages]") {
  sim::SimConfig config = simOf(256 * kMiB, 20'000);
  config.virtual_memory = false;
  for (const char* conf : {"", "backing:pages,recycle:eager"}) {
    SimRig rig(conf, config);
    everyday(rig);
    CHECK(rig.allocator.options().backing == Backing::kSegments);
    CHECK(countOf(rig.sim(), Call::kMalloc) > 0);
    CHECK(mappingCalls(rig.sim()) == 0);
    CHECK(pagesOf(rig.allocator).created == 0);
  }
}

TEST_CASE("segments by choice make no pages", "[engine][pages]") {
  SimRig rig("backing:segments", simOf(256 * kMiB, 20'000));
  everyday(rig);
  CHECK(mappingCalls(rig.sim()) == 0);
}

TEST_CASE("pages make no device mallocs", "[engine][pages]") {
  SimRig rig("", simOf(256 * kMiB, 20'000));
  everyday(rig);
  CHECK(countOf(rig.sim(), Call::kMalloc) == 0);
  CHECK(pagesOf(rig.allocator).created > 0);
}

TEST_CASE("pages work at every granularity that divides 2 MiB, others get segments",
          "[engine][pages]") {
  for (std::uint64_t granularity : {4 * kKiB, 64 * kKiB, kMiB, 2 * kMiB}) {
    INFO(granularity);
    SimRig rig("recycle:eager", ofGranularity(granularity));
    everyday(rig);
    CHECK(countOf(rig.sim(), Call::kMalloc) == 0);
  }
  SimRig rig("recycle:eager", ofGranularity(4 * kMiB));
  everyday(rig);
  CHECK(mappingCalls(rig.sim()) == 0);
}

TEST_CASE("a device that refuses large reservations serves from smaller ones", "[engine][pages]") {
  for (int refused = 1; refused <= 6; ++refused) {
    INFO(refused << " refusals");
    SimRig rig("", simOf(kGiB));
    for (int i = 1; i <= refused; ++i) rig.sim().faults().failNth(Call::kReserve, unsigned(i));
    void* block = rig.allocator.allocate(4 * kMiB);
    rig.touch({}, block);
    CHECK(rig.sim().faults().hits() == std::uint64_t(refused));
    // Later requests do not fit the small range: another is opened.
    std::vector<void*> more;
    for (int i = 0; i < 8; ++i) more.push_back(rig.allocator.allocate(100 * kMiB));
    for (void* one : more) rig.touch({}, one);
    for (void* one : more) rig.allocator.free(one);
    rig.touch({}, rig.allocator.allocate(900 * kMiB));
    checkAtRest(rig);
  }
}

TEST_CASE("a device that claims pages and refuses each is served by segments", "[engine][pages]") {
  for (const Call step : kPageCalls) {
    for (const ErrorKind kind : {ErrorKind::kNotSupported, ErrorKind::kOther}) {
      SimRig rig("recycle:eager", simOf(256 * kMiB, 20'000));
      checkServedBySegments(rig, step, kind);
    }
  }
  SimRig rig("recycle:eager", simOf(256 * kMiB, 20'000));
  checkServedBySegments(rig, Call::kReserve, ErrorKind::kOutOfMemory);
}

TEST_CASE("one refusal of a page is none of pages", "[engine][pages]") {
  for (const Call step : kPageCalls) {
    INFO(callName(step));
    SimRig rig("", simOf(kGiB));
    rig.sim().faults().failNth(step, 1, ErrorKind::kOther);
    try {
      (void)rig.allocator.allocate(4 * kMiB);
    } catch (const OutOfMemory&) {
    }
    rig.touch({}, rig.allocator.allocate(4 * kMiB));
    CHECK(countOf(rig.sim(), Call::kMalloc) == 0);
  }
}

TEST_CASE("a full device is out of memory, and has pages once there is room", "[engine][pages]") {
  SimRig rig("", simOf(kGiB));
  rig.sim().faults().failAll(Call::kCreatePage);
  CHECK_THROWS_AS(rig.allocator.allocate(4 * kMiB), OutOfMemory);
  CHECK(takenOf(rig.sim()) == 0);
  rig.sim().faults().clear();
  rig.touch({}, rig.allocator.allocate(4 * kMiB));
  CHECK(countOf(rig.sim(), Call::kMalloc) == 0);
}

TEST_CASE("pages that worked once are not given up", "[engine][pages]") {
  SimRig rig("", simOf(kGiB));
  rig.touch({}, rig.allocator.allocate(4 * kMiB));
  rig.sim().faults().failAll(Call::kSetAccess, ErrorKind::kOther);
  CHECK_THROWS_AS(rig.allocator.allocate(100 * kMiB), OutOfMemory);
  CHECK(countOf(rig.sim(), Call::kMalloc) == 0);
}

TEST_CASE("threads that find pages refused at once are all served", "[engine][pages][threads]") {
  for (const Call step : kPageCalls) {
    SimRig rig("", simOf(kGiB));
    rig.sim().faults().failAll(step, ErrorKind::kOther);
    const Streams streams(rig.allocator, 4);
    std::atomic<int> served{0};
    onThreads(streams.size(), [&](std::size_t t) {
      for (int i = 0; i < 50; ++i) {
        void* const block = rig.allocator.allocate(std::size_t(512) << (i % 14), streams[t]);
        served += block != nullptr;
        rig.allocator.free(block);
        if (i % 10 == 0) rig.allocator.emptyCache();
      }
    });
    CHECK(served == 200);
  }
}

}  // namespace cistern::test
