// The price of one request while blocks wait for other streams, however many there are.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "allocator/engine/events/pending_frees.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

constexpr std::int64_t kEndedByMiss = std::int64_t(PendingFrees::kMany.ended);
constexpr std::int64_t kWaiting = 4 * kEndedByMiss - kEndedByMiss / 8;
// All together more than a request of 56 MiB leaves of 64, also where bounds are 4.
constexpr std::size_t kWaitingBlock = std::max(40 * kKiB, 16 * kMiB / std::size_t(kWaiting));
constexpr std::uint64_t kManyAsked = PendingFrees::kMany.asked;

struct PendingBoundsRig : SimRig {
  using SimRig::SimRig;
  std::int64_t waiting() const {
    return nowOf(allocator, Stat::kActive) - nowOf(allocator, Stat::kAllocation);
  }
  std::uint64_t allCalls() {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : sim().callCounts()) sum += count;
    return sum;
  }
  /// Frees blocks that wait for the stream, whose work goes on.
  void freeMany() {
    sim().launch(user, {"copy", {}, kLongNs, nullptr}).orThrow();
    std::vector<void*> blocks;
    for (std::int64_t i = 0; i < kWaiting; ++i) {
      blocks.push_back(allocator.allocate(kWaitingBlock, own));
      allocator.recordStream(blocks.back(), user);
    }
    for (void* block : blocks) allocator.free(block);
    REQUIRE(waiting() == kWaiting);
  }

  const Stream own = stream(), user = stream();
};

}  // namespace

TEST_CASE("a miss ends a bounded number of frees that wait, and later ones the rest", "[engine]") {
  PendingBoundsRig rig("", simOf(8 * kGiB));
  rig.freeMany();
  rig.work.delay(rig.own, 2 * kLongNs);
  rig.sim().advanceHost(2 * kLongNs);
  std::int64_t left = kWaiting;
  for (std::size_t size = 60 * kMiB; left > 0; size += 10 * kMiB) {
    const std::uint64_t before = countOf(rig.sim(), Call::kQueryEvent);
    (void)rig.allocator.allocate(size, rig.own);
    left = std::max(left - kEndedByMiss, std::int64_t{0});
    CHECK(rig.waiting() == left);
    CHECK(countOf(rig.sim(), Call::kQueryEvent) - before <= kManyAsked + 8);  // 8: marks
  }
}

TEST_CASE("one hit of several asks a few frees that wait", "[engine]") {
  PendingBoundsRig rig("thread_cache:off", simOf(8 * kGiB));
  void* const kept = rig.allocator.allocate(kWaitingBlock, rig.own);
  rig.freeMany();
  rig.sim().advanceHost(2 * kLongNs);
  const std::uint64_t before = rig.allCalls();
  for (std::size_t hit = 0; hit < PendingFrees::kHitsPerPoll; ++hit) {
    CHECK(rig.waiting() == kWaiting);
    rig.allocator.free(kept);
    CHECK(rig.allocator.allocate(kWaitingBlock, rig.own) == kept);
  }
  CHECK(rig.allCalls() - before <= PendingFrees::kHits.asked + 2);  // 2: the mode of captures
  CHECK(kWaiting - rig.waiting() == std::int64_t(PendingFrees::kHits.asked));
}

TEST_CASE("a request that would be refused ends all frees that wait", "[engine]") {
  PendingBoundsRig rig("limit:64M", simOf(8 * kGiB));
  rig.freeMany();
  rig.sim().advanceHost(2 * kLongNs);
  const std::uint64_t waited = waits(rig.sim());
  CHECK(rig.allocator.allocate(56 * kMiB, rig.own) != nullptr);
  CHECK(rig.waiting() == 0);
  CHECK(waits(rig.sim()) == waited);
}

}  // namespace cistern::test
