// The price of one request while blocks wait, however many there are.
#include <vector>

#include "allocator/engine/events/pending_frees.hpp"
#include "tests/pinned/pinned_support.hpp"

namespace cistern::test {
namespace {

constexpr std::size_t kStreams = 64, kBlock = 1'000;
constexpr std::uint64_t kAsked = PendingFrees::kFew.asked, kEnded = PendingFrees::kFew.ended;

struct BoundsRig : PinnedRig {
  std::uint64_t allCalls() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t count : device->callCounts()) sum += count;
    return sum;
  }
  /// A freed block on each of many streams, whose work takes so long.
  void waitOnMany(std::uint64_t lasting) {
    for (std::size_t i = 0; i < kStreams; ++i) {
      const Stream used = stream();
      device->launch(used, {"copy", {}, lasting, {}}).orThrow();
      freedOn(used);
    }
  }
  void freedOn(Stream used) {
    void* const block = pinned.allocate(kBlock);
    pinned.recordStream(block, used);
    pinned.free(block);
  }
};

}  // namespace

TEST_CASE("a request that free memory serves asks a few of many streams", "[pinned]") {
  BoundsRig rig;
  rig.waitOnMany(sim::kNever);
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = rig.allCalls();
    (void)rig.pinned.allocate(kBlock);
    CHECK(rig.allCalls() - before <= kAsked + 2);  // 2: the thread's mode for captures, and back
  }
  CHECK(rig.reserved() == std::int64_t(2 * kMiB));
}

TEST_CASE("streams take turns, so that a few requests ask all of them", "[pinned]") {
  BoundsRig rig;
  rig.waitOnMany(kLateNs);
  rig.device->advanceHost(2 * kLateNs);
  std::vector<void*> held;
  for (std::size_t i = 0; i <= kStreams; ++i) held.push_back(rig.pinned.allocate(kBlock));
  CHECK(rig.active() == std::int64_t(held.size()));
}

TEST_CASE("work that never ends on many streams does not keep the others from their turns",
          "[pinned]") {
  BoundsRig rig;
  rig.waitOnMany(sim::kNever);
  rig.freedOn(rig.stream());  // whose event is complete at once
  CHECK(rig.active() == std::int64_t(kStreams + 1));
  std::vector<void*> held;
  for (std::size_t i = 0; i <= kStreams / kAsked; ++i) held.push_back(rig.pinned.allocate(kBlock));
  CHECK(rig.active() == std::int64_t(kStreams + held.size()));
}

TEST_CASE("a request ends a bounded number of uses, and later ones the rest", "[pinned]") {
  BoundsRig rig;
  const Stream captured = rig.stream();
  std::vector<void*> blocks;
  const std::size_t count = 2 * kEnded + 1;
  for (std::size_t i = 0; i < count; ++i) {
    blocks.push_back(rig.pinned.allocate(512));
    rig.pinned.recordStream(blocks.back(), captured);
  }
  rig.device->beginCapture(captured, CaptureMode::kRelaxed).orThrow();
  for (void* block : blocks) rig.pinned.free(block);
  rig.device->destroyGraph(rig.device->endCapture(captured).orThrow()).orThrow();
  std::int64_t left = std::int64_t(count);
  for (int i = 1; left > 0; ++i) {
    (void)rig.pinned.allocate(512);
    left = std::max(left - std::int64_t(kEnded), std::int64_t{0});
    CHECK(rig.active() == left + i);
  }
}

TEST_CASE("a request that would pin more memory looks at all that waits", "[pinned]") {
  BoundsRig rig;
  rig.waitOnMany(sim::kNever);
  void* const used = rig.freedInUse(rig.stream(), 5 * kMiB);
  const std::int64_t before = rig.reserved();
  rig.device->advanceHost(2 * kLateNs);
  CHECK(rig.pinned.allocate(5 * kMiB) == used);
  CHECK(rig.reserved() == before);
}

TEST_CASE("each stream is asked once more for all blocks that another gives back", "[pinned]") {
  BoundsRig rig;
  rig.waitOnMany(sim::kNever);
  const Stream used = rig.stream();
  constexpr std::size_t kBlocks = 100;
  for (std::size_t i = 0; i < kBlocks; ++i) rig.freedOn(used);
  const std::uint64_t before = rig.calls(Call::kQueryEvent);
  (void)rig.pinned.allocate(5 * kMiB);  // looks at all
  CHECK(rig.active() == std::int64_t(kStreams + 1));
  CHECK(rig.calls(Call::kQueryEvent) - before <= kBlocks + kStreams + kAsked);
}

}  // namespace cistern::test
