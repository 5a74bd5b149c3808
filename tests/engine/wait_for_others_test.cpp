// cross_stream_reuse:wait: a stream is made to wait for others' queued work rather than that the
// allocator grows.
#include "allocator/engine/engine.hpp"
#include "tests/engine/pages/pages_support.hpp"

namespace cistern::test {
namespace {

constexpr std::uint64_t kBlock = 40 * kMiB;

/// What the allocator grows by for a stream that asks for what another has freed a moment ago.
std::int64_t growthOf(SimRig& rig) {
  const Stream giver = rig.stream(), taker = rig.stream();
  void* given = rig.allocator.allocate(kBlock, giver);
  rig.work.delay(giver, kLongNs);
  rig.touch(giver, given);
  rig.allocator.free(given);
  const std::int64_t before = reservedOf(rig.allocator);
  void* taken = rig.allocator.allocate(kBlock, taker);
  rig.touch(taker, taken);
  const std::int64_t growth = reservedOf(rig.allocator) - before;
  rig.allocator.free(taken);
  checkAtRest(rig);
  return growth;
}

}  // namespace

TEST_CASE("a stream waits for another rather than that the allocator grows", "[engine][pages]") {
  for (const std::string backing : {"backing:pages", "backing:segments"}) {
    CAPTURE(backing);
    for (const bool waits : {false, true}) {
      SimRig rig(backing + ",cross_stream_reuse:" + (waits ? "wait" : "true"));
      const std::uint64_t orders = countOf(rig.sim(), Call::kWaitEvent);
      CHECK((growthOf(rig) == 0) == waits);
      CHECK((countOf(rig.sim(), Call::kWaitEvent) > orders) == waits);
    }
  }
}

TEST_CASE("where streams are many, a stream waits for all only before it is refused",
          "[engine][pages]") {
  for (const std::string backing : {"backing:pages", "backing:segments"}) {
    CAPTURE(backing);
    SimRig rig(backing + ",cross_stream_reuse:wait,limit:64M");
    for (std::size_t i = 0; i < 1'000; ++i) rig.allocator.registerStream(rig.stream());
    const auto orders = [&rig] { return countOf(rig.sim(), Call::kWaitEvent); };
    const Stream giver = rig.stream(), taker = rig.stream();
    void* given = rig.allocator.allocate(kBlock, giver);
    rig.work.delay(giver, kLongNs);
    rig.touch(giver, given);
    rig.allocator.free(given);
    const std::uint64_t before = countOf(rig.sim(), Call::kQueryStream), ordered = orders();
    void* small = rig.allocator.allocate(12 * kMiB, taker);  // there is room for another
    CHECK(countOf(rig.sim(), Call::kQueryStream) - before <= 2 * StreamProgress::kFew);
    CHECK(orders() == ordered);
    void* taken = rig.allocator.allocate(30 * kMiB, taker);  // there is none for this
    rig.touch(taker, taken);
    CHECK(orders() > ordered);
    rig.allocator.free(small);
    rig.allocator.free(taken);
    checkAtRest(rig);
  }
}

TEST_CASE("where a stream cannot be made to wait the allocator grows", "[engine][pages]") {
  for (const std::string backing : {"backing:pages", "backing:segments"}) {
    CAPTURE(backing);
    SimRig rig(backing + ",cross_stream_reuse:wait");
    rig.sim().faults().failAll(Call::kWaitEvent, ErrorKind::kOther);
    CHECK(growthOf(rig) >= std::int64_t(kBlock));
  }
}

}  // namespace cistern::test
