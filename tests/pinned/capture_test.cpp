// Pinned memory while graphs are captured.
#include <vector>

#include "allocator/base/bounds.hpp"
#include "tests/pinned/pinned_support.hpp"

namespace cistern::test {
namespace {

DeviceGraph end(PinnedRig& rig, Stream stream) { return rig.device->endCapture(stream).orThrow(); }

}  // namespace

TEST_CASE("blocks that are freed in a capture come back together", "[pinned]") {
  PinnedRig rig;
  const Stream streams[] = {rig.stream(), rig.stream()};
  std::vector<void*> blocks;
  for (int i = 0; i < 64; ++i) {
    blocks.push_back(rig.pinned.allocate(1'000));
    for (const Stream stream : streams) rig.pinned.recordStream(blocks.back(), stream);
  }
  for (const Stream stream : streams)
    rig.device->beginCapture(stream, CaptureMode::kRelaxed).orThrow();
  for (void* block : blocks) rig.pinned.free(block);
  for (const Stream stream : streams) rig.device->destroyGraph(end(rig, stream)).orThrow();
  const auto queueMore = [&](std::uint64_t lasting) {
    for (const Stream stream : streams)
      rig.device->launch(stream, {"later work", {}, lasting, {}}).orThrow();
  };
  queueMore(kLateNs);
  CHECK(rig.calls(Call::kRecordEvent) == 0);
  (void)rig.pinned.allocate(1'000);
  CHECK(rig.active() == 65);  // they wait for the later work, too
  CHECK(rig.calls(Call::kRecordEvent) == 2);
  queueMore(sim::kNever);  // which none of them waits for
  rig.device->advanceHost(2 * kLateNs);
  std::int64_t held = 1;
  do {  // with bounds of 4 a poll ends few
    (void)rig.pinned.allocate(1'000);
    ++held;
  } while (kTightBounds && rig.active() > held && held < 100);
  CHECK(rig.active() == held);
}

TEST_CASE("a block that was freed in a capture waits for the device if its stream is gone since",
          "[pinned]") {
  PinnedRig rig;
  const Stream stream = rig.stream();
  void* const block = rig.pinned.allocate(kMiB);
  rig.pinned.recordStream(block, stream);
  rig.device->beginCapture(stream, CaptureMode::kRelaxed).orThrow();
  rig.pinned.free(block);
  rig.device->destroyGraph(end(rig, stream)).orThrow();
  rig.device->destroyStream(stream).orThrow();
  CHECK(rig.pinned.allocate(kMiB) != block);
  rig.pinned.emptyCache();
  CHECK(rig.calls(Call::kSynchronizeDevice) == 1);
  CHECK(rig.pinned.allocate(kMiB) == block);
}

TEST_CASE("every verb leaves captures of every mode whole", "[pinned]") {
  for (const CaptureMode mode :
       {CaptureMode::kGlobal, CaptureMode::kThreadLocal, CaptureMode::kRelaxed}) {
    PinnedRig rig;
    const Stream captured = rig.stream(), other = rig.stream();
    (void)rig.freedInUse(other, 3 * kMiB);
    void* const held = rig.pinned.allocate(kMiB);
    rig.device->beginCapture(captured, mode).orThrow();
    rig.pinned.recordStream(held, captured);
    rig.pinned.free(held);
    rig.pinned.free(rig.pinned.allocate(40 * kMiB));
    (void)rig.freedInUse(other, 5 * kMiB);
    rig.pinned.emptyCache();
    rig.pinned.free(rig.pinned.allocate(80 * kMiB));
    CHECK_THROWS_WITH(rig.pinned.forgetStream(captured),
                      Catch::Matchers::ContainsSubstring("captured"));
    rig.pinned.forgetStream(other);
    rig.device->destroyGraph(end(rig, captured)).orThrow();
  }
}

TEST_CASE("a request that is out of memory during a capture leaves the capture whole", "[pinned]") {
  PinnedRig rig;
  const Stream captured = rig.stream();
  void* const held = rig.pinned.allocate(8 * kMiB);
  rig.pinned.setLimit(8 * kMiB);
  rig.device->beginCapture(captured, CaptureMode::kGlobal).orThrow();
  rig.pinned.recordStream(held, captured);
  rig.pinned.free(held);
  CHECK_THROWS_AS(rig.pinned.allocate(8 * kMiB), OutOfPinnedMemory);
  rig.device->destroyGraph(end(rig, captured)).orThrow();
  CHECK(rig.pinned.allocate(8 * kMiB) == held);
}

}  // namespace cistern::test
