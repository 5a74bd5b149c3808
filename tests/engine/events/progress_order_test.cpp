// Order between streams, waiting for all of them, and captures that streams may join at any moment.
#include "allocator/engine/core/progress.hpp"
#include "tests/engine/parts_support.hpp"

namespace cistern::test {
namespace {

struct ProgressOrderRig : Parts {
  Heap& heapWithFree(Stream stream) {
    Heap& heap = heapOf(stream);
    release(allocate(heap, kMiB));
    return heap;
  }
  static bool allComplete(Heap& heap) {
    const MutexLock lock(heap.mutex());
    return incompleteBlocks(heap).empty();
  }
};

}  // namespace

TEST_CASE("a stream is ordered after all others on the device, and the host does not wait",
          "[engine][part]") {
  ProgressOrderRig rig;
  rig.busyStream();
  rig.busyStream(2 * kLongNs);
  const Stream later = rig.stream();
  CHECK(rig.progress.orderAfterAll(later));
  CHECK_FALSE(rig.sim.queryStream(later).orThrow());
  rig.sim.advanceHost(3 * kLongNs / 2);
  CHECK_FALSE(rig.sim.queryStream(later).orThrow());
  rig.sim.advanceHost(kLongNs);
  CHECK(rig.sim.queryStream(later).orThrow());
  CHECK(waits(rig.sim) == 0);
}

TEST_CASE("a stream comes after the end of a forgotten one, which may be over", "[engine][part]") {
  ProgressOrderRig rig;
  const Stream earlier = rig.busyStream(), later = rig.stream();
  rig.streams.forgetStream(earlier);
  rig.sim.destroyStream(earlier).orThrow();
  CHECK(rig.progress.orderAfterAll(later));
  CHECK_FALSE(rig.sim.queryStream(later).orThrow());
  rig.sim.advanceHost(2 * kLongNs);
  const std::uint64_t ordered = rig.calls(Call::kWaitEvent);
  CHECK(rig.progress.orderAfterAll(later));
  CHECK(rig.calls(Call::kWaitEvent) == ordered);
}

TEST_CASE("there is no order for a captured stream, a forgotten one, or against the device",
          "[engine][part]") {
  ProgressOrderRig rig;
  rig.busyStream();
  const Stream captured = rig.stream(), gone = rig.stream(), other = rig.stream();
  rig.streams.forgetStream(gone);
  rig.beginCapture(captured);
  CHECK_FALSE(rig.progress.answers(captured));
  CHECK_FALSE(rig.progress.idle(captured));
  CHECK_FALSE(rig.progress.orderAfterAll(captured));
  CHECK_FALSE(rig.progress.orderAfterAll(other));  // the captured one does not tell
  CHECK_FALSE(rig.progress.orderAfterAll(gone));
  rig.endCapture(captured);  // nothing of it was broken
  CHECK_FALSE(rig.progress.orderAfterAll(gone));
  for (const Call call : {Call::kRecordEvent, Call::kWaitEvent}) {
    rig.sim.faults().failNth(call, 1, ErrorKind::kOther);
    CHECK_FALSE(rig.progress.orderAfterAll(other));
    rig.sim.faults().clear();
  }
  CHECK(rig.progress.orderAfterAll(other));
}

TEST_CASE("a stream whose capture was announced stands for what it had queued before",
          "[engine][part]") {
  ProgressOrderRig rig;
  const Stream captured = rig.busyStream(), other = rig.stream();
  Heap& heap = rig.heapWithFree(other);
  rig.streams.captureBegins(captured);
  rig.beginCapture(captured);
  rig.progress.refresh(heap);
  CHECK_FALSE(ProgressOrderRig::allComplete(heap));
  rig.sim.advanceHost(2 * kLongNs);
  rig.progress.refresh(heap);
  CHECK(ProgressOrderRig::allComplete(heap));
  CHECK(rig.progress.orderAfterAll(other));
  rig.endCapture(captured);
  rig.streams.captureEnds(captured);
  rig.release(rig.allocate(heap, kMiB));
  rig.beginCapture(captured);  // not announced: it does not tell
  rig.progress.refresh(heap);
  CHECK_FALSE(ProgressOrderRig::allComplete(heap));
  rig.endCapture(captured);
}

TEST_CASE("a capture that is announced late pulls no other stream in", "[engine][part]") {
  ProgressOrderRig rig;
  const Stream captured = rig.busyStream(), other = rig.stream();
  Heap& heap = rig.heapWithFree(other);
  rig.beginCapture(captured);
  rig.streams.captureBegins(captured);  // an event that is recorded now would be the capture's
  rig.progress.refresh(heap);
  CHECK_FALSE(ProgressOrderRig::allComplete(heap));
  CHECK_FALSE(rig.progress.orderAfterAll(other));
  CHECK(rig.sim.captureInfo(other).orThrow().status == CaptureStatus::kNone);
  rig.endCapture(captured);
  rig.streams.captureEnds(captured);
}

TEST_CASE("memory that another stream used untold is complete when that stream is",
          "[engine][part]") {
  ProgressOrderRig rig;
  const Stream owner = rig.stream(), user = rig.stream();
  Heap& heap = rig.heapWithFree(owner);
  rig.work(user, kLongNs);  // uses what is freed next
  rig.release(rig.allocate(heap, kMiB));
  CHECK(rig.progress.idle(owner));
  rig.progress.refresh(heap);
  CHECK_FALSE(ProgressOrderRig::allComplete(heap));
  rig.work(user, kLongNs);  // queued after the free: nothing waits for it
  rig.sim.advanceHost(3 * kLongNs / 2);
  rig.progress.refresh(heap);
  CHECK(ProgressOrderRig::allComplete(heap));
}

TEST_CASE("several heaps share one mark", "[engine][part]") {
  ProgressOrderRig rig;
  std::vector<Heap*> heaps;
  for (int i = 0; i < 8; ++i) heaps.push_back(&rig.heapWithFree(rig.busyStream()));
  rig.progress.refresh(heaps);
  CHECK(rig.calls(Call::kRecordEvent) == 8);  // one for each stream that is busy
  rig.sim.advanceHost(2 * kLongNs);
  rig.progress.refresh(heaps);
  for (Heap* heap : heaps) CHECK(ProgressOrderRig::allComplete(*heap));
  CHECK(rig.calls(Call::kQueryEvent) == 8);
}

TEST_CASE("a mark of many streams is made in steps, and no look asks them all", "[engine][part]") {
  ProgressOrderRig rig;
  constexpr int kStreams = 1'000;
  for (int i = 0; i < kStreams; ++i) rig.stream();
  Heap& heap = rig.heapWithFree(rig.stream());
  int looks = 0;
  for (; !ProgressOrderRig::allComplete(heap) && looks < kStreams; ++looks) {
    const std::uint64_t before = rig.calls(Call::kQueryStream);
    rig.progress.refresh(heap);
    CHECK(rig.calls(Call::kQueryStream) <= before + StreamProgress::kFew);
  }
  CHECK(looks == int(kStreams / StreamProgress::kFew) + 1);
}

TEST_CASE("a stream that was destroyed without notice holds up its own memory only",
          "[engine][part]") {
  ProgressOrderRig rig;
  const Stream dead = rig.busyStream();
  Heap& own = rig.heapWithFree(dead);
  Heap& other = rig.heapWithFree(rig.stream());
  rig.sim.destroyStream(dead).orThrow();
  rig.progress.refresh({&own, &other});
  CHECK_FALSE(ProgressOrderRig::allComplete(own));
  CHECK(ProgressOrderRig::allComplete(other));
}

TEST_CASE("all that was freed is complete when the device is", "[engine][part]") {
  ProgressOrderRig rig;
  Heap& first = rig.heapWithFree(rig.busyStream());
  Heap& second = rig.heapWithFree(rig.stream());
  CHECK(rig.progress.completeAll({&first, &second}));
  CHECK(ProgressOrderRig::allComplete(first));
  CHECK(ProgressOrderRig::allComplete(second));
  CHECK(rig.calls(Call::kSynchronizeDevice) == 1);
}

TEST_CASE("what is freed while the host waits, or a capture has freed, is not", "[engine][part]") {
  ProgressOrderRig rig;
  Heap& heap = rig.heapWithFree(rig.busyStream());
  Heap& recording = rig.heapWithFree(rig.stream());
  {
    const MutexLock lock(recording.mutex());
    (void)recording.endedEpoch();
    recording.completion().beginCapture(7);
  }
  Block& late = rig.allocate(heap, kMiB);
  rig.device.before = [&](Call call) {
    if (call == Call::kSynchronizeDevice) Parts::release(late);
  };
  CHECK(rig.progress.completeAll({&heap, &recording}));
  CHECK_FALSE(ProgressOrderRig::allComplete(heap));
  CHECK_FALSE(ProgressOrderRig::allComplete(recording));
}

TEST_CASE("where the host cannot wait for the device nothing is complete", "[engine][part]") {
  ProgressOrderRig rig;
  Heap& heap = rig.heapWithFree(rig.busyStream(sim::kNever));
  CHECK_FALSE(rig.progress.completeAll({&heap}));
  CHECK_FALSE(ProgressOrderRig::allComplete(heap));
}

TEST_CASE("while a capture is under way events are asked, and no stream", "[engine][part]") {
  ProgressOrderRig rig;
  Heap& heap = rig.heapWithFree(rig.stream());
  rig.progress.captureBegins();
  rig.progress.captureBegins();
  rig.progress.captureEnds();
  rig.progress.refresh(heap);  // what is asked at once is an event
  CHECK(rig.calls(Call::kQueryStream) == 0);
  CHECK(rig.calls(Call::kQueryEvent) == 1);
  CHECK(ProgressOrderRig::allComplete(heap));
  CHECK_FALSE(rig.progress.idle(heap.stream()));
  rig.progress.captureEnds();
  CHECK(rig.progress.idle(heap.stream()));
}

TEST_CASE("an event that a capture which begins or ends meanwhile may have is no mark",
          "[engine][part]") {
  for (const bool ends : {false, true}) {
    ProgressOrderRig rig;
    Heap& heap = rig.heapWithFree(rig.busyStream());
    if (ends) rig.progress.captureBegins();
    rig.device.before = [&](Call call) {
      if (call != Call::kRecordEvent) return;
      rig.device.before = nullptr;
      ends ? rig.progress.captureEnds() : rig.progress.captureBegins();
    };
    rig.progress.refresh(heap);
    rig.sim.advanceHost(2 * kLongNs);
    rig.progress.refreshByEvent(heap);
    CHECK_FALSE(ProgressOrderRig::allComplete(heap));
    if (!ends) rig.progress.captureEnds();
    rig.progress.refresh(heap);
    CHECK(ProgressOrderRig::allComplete(heap));
  }
}

}  // namespace cistern::test
