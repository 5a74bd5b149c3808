// A capture elsewhere in the program is not broken by what the allocator asks the device.
#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

/// A capture on a stream that has left free memory behind.
struct CaptureRig : SimRig {
  explicit CaptureRig(std::string_view conf, CaptureMode mode)
      : SimRig(conf, simOf(64 * kMiB, 10'000)), capturing(stream()), other(stream()) {
    void* block = allocator.allocate(20 * kMiB, capturing);
    touch(capturing, block);
    allocator.free(block);
    kept = allocator.allocate(4 * kMiB, capturing);
    sim().beginCapture(capturing, mode).orThrow();
    work.delay(capturing, 1'000);
  }
  ~CaptureRig() {
    CHECK(sim().captureInfo(capturing).orThrow().status == CaptureStatus::kActive);
    const auto graph = sim().endCapture(capturing);
    CHECK((graph.ok() && sim().destroyGraph(graph.value()).ok()));
  }
  Stream capturing, other;
  void* kept = nullptr;
};

constexpr CaptureMode kModes[] = {CaptureMode::kGlobal, CaptureMode::kThreadLocal,
                                  CaptureMode::kRelaxed};

}  // namespace

TEST_CASE("growing, polling and freeing across streams leave a capture alone", "[engine]") {
  for (CaptureMode mode : kModes) {
    CaptureRig rig("thread_cache:off", mode);
    const Stream user = rig.stream();
    for (std::size_t i = 0; i < 10; ++i) {
      void* block = rig.allocator.allocate((1 + i % 3) * kMiB, rig.other);
      rig.allocator.recordStream(block, user);
      rig.touch(user, block);
      rig.allocator.free(block);
      hitUntilPoll(rig.allocator, rig.other);
      rig.allocator.audit();
    }
    rig.allocator.emptyCache();
  }
}

TEST_CASE("memory that a capturing stream left is not asked for, so the capture goes on",
          "[engine]") {
  for (CaptureMode mode : kModes) {
    CaptureRig rig("", mode);
    void* block = rig.allocator.allocate(16 * kMiB, rig.other);  // would fit behind `kept`
    CHECK(rig.allocator.getBaseAllocation(block).base != rig.kept);
    CHECK(reservedOf(rig.allocator) == mib(20 + 16));
    CHECK_THROWS_AS(rig.allocator.allocate(40 * kMiB, rig.other), OutOfMemory);
    rig.allocator.free(block);
  }
}

TEST_CASE("only a capture that was announced lets others have memory that queued work uses",
          "[engine]") {
  SimRig rig("limit:40M", simOf(64 * kMiB, 10'000));
  const Stream captured = rig.stream(), other = rig.stream(), third = rig.stream();
  void* kept = rig.allocator.allocate(4 * kMiB, captured);
  void* block = rig.allocator.allocate(20 * kMiB, other);
  rig.work.delay(captured, kLongNs);  // it may use the block, too
  rig.work.delay(other, kLongNs);
  rig.touch(other, block);
  rig.allocator.free(block);
  rig.sim().beginCapture(captured, CaptureMode::kGlobal).orThrow();
  if (onPages(rig.allocator))  // a segment goes back to the device, which waits
    CHECK_THROWS_AS(rig.allocator.allocate(18 * kMiB, third), OutOfMemory);
  const auto graph = rig.sim().endCapture(captured).orThrow();
  rig.sim().destroyGraph(graph).orThrow();
  void* borrowed = rig.allocator.allocate(18 * kMiB, third);
  // Lent as it is, or its pages moved; in both cases ordered on the device, without a wait.
  CHECK((onPages(rig.allocator) || borrowed == block));
  CHECK(reservedOf(rig.allocator) <= mib(40));
  CHECK(rig.sim().now() < kLongNs);
  rig.touch(third, borrowed);
  rig.allocator.free(borrowed);
  rig.allocator.free(kept);
}

}  // namespace cistern::test
