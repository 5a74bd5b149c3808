// How far streams are known to have come, by the marks of their heaps.
#include "allocator/engine/core/progress.hpp"

#include "tests/engine/parts_support.hpp"

namespace cistern::test {
namespace {

struct ProgressRig : Parts {
  /// Frees a block of its own in the heap; the epoch of that free.
  std::uint64_t freeIn(Heap& heap) {
    release(allocate(heap, kMiB));
    return epochOf(heap);
  }
  static std::uint64_t epochOf(Heap& heap) { return Parts::epochOf(heap); }
  /// Whether any mark is under way.
  static bool isMarked(Heap& heap) {
    const MutexLock lock(heap.mutex());
    return heap.completion().isAsked();
  }
  bool complete(Heap& heap, std::uint64_t epoch) { return epoch <= completedOf(heap); }
};

}  // namespace

TEST_CASE("what was freed before a mark is complete when the mark is reached", "[engine][part]") {
  ProgressRig rig;
  Heap& heap = rig.heapOf(rig.busyStream());
  const std::uint64_t freed = rig.freeIn(heap);
  rig.progress.refresh(heap);
  CHECK(ProgressRig::isMarked(heap));
  const std::uint64_t later = rig.freeIn(heap);
  CHECK(later > freed);
  CHECK_FALSE(rig.complete(heap, freed));
  rig.sim.advanceHost(2 * kLongNs);
  rig.work(heap.stream(), kLongNs);
  rig.progress.refresh(heap);
  CHECK(rig.complete(heap, freed));
  CHECK_FALSE(rig.complete(heap, later));
  Parts::audit(heap);
}

TEST_CASE("an idle stream needs no event, and nothing is asked where nothing was freed",
          "[engine][part]") {
  ProgressRig rig;
  Heap& heap = rig.heapOf(rig.stream());
  const std::uint64_t freed = rig.freeIn(heap);
  rig.progress.refresh(heap);
  CHECK(rig.complete(heap, freed));
  CHECK(rig.calls(Call::kCreateEvent) == 0);
  const CallCounts before = rig.sim.callCounts();
  rig.progress.refresh(heap);
  CHECK(rig.sim.callCounts() == before);
}

TEST_CASE("several marks are under way, and each says what came before it", "[engine][part]") {
  constexpr std::uint64_t kStep = 1'000'000;
  ProgressRig rig;
  Heap& heap = rig.heapOf(rig.stream());
  std::vector<std::uint64_t> freed;
  const std::uint64_t begin = rig.sim.now();
  for (int i = 0; i < 4; ++i) {
    rig.work(heap.stream(), kStep);
    freed.push_back(rig.freeIn(heap));
    rig.progress.refresh(heap);
  }
  CHECK(rig.calls(Call::kRecordEvent) == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    const std::uint64_t due = begin + (i + 1) * kStep + kStep / 2;
    if (due > rig.sim.now()) rig.sim.advanceHost(due - rig.sim.now());
    rig.progress.refreshByEvent(heap);
    CHECK(rig.complete(heap, freed[i]));
    CHECK((i == 3 || !rig.complete(heap, freed[i + 1])));
    Parts::audit(heap);
  }
  CHECK_FALSE(ProgressRig::isMarked(heap));
}

TEST_CASE("where there is no room for one mark more the youngest marks more", "[engine][part]") {
  ProgressRig rig;
  Heap& heap = rig.heapOf(rig.busyStream());
  std::uint64_t last = 0;
  for (int i = 0; i < 40; ++i) {
    last = rig.freeIn(heap);
    rig.progress.refresh(heap);
    Parts::audit(heap);
  }
  CHECK(rig.calls(Call::kRecordEvent) == 40);
  CHECK(rig.calls(Call::kCreateEvent) < 20);
  rig.sim.advanceHost(2 * kLongNs);
  rig.progress.refreshByEvent(heap);
  CHECK(rig.complete(heap, last));
}

TEST_CASE("an event that cannot be had leaves the free to the next mark", "[engine][part]") {
  ProgressRig rig;
  Heap& heap = rig.heapOf(rig.busyStream());
  const std::uint64_t freed = rig.freeIn(heap);
  for (const Call call : {Call::kCreateEvent, Call::kRecordEvent}) {
    rig.sim.faults().failNth(call, 1, ErrorKind::kOther);
    rig.progress.refresh(heap);
    CHECK_FALSE(ProgressRig::isMarked(heap));
  }
  rig.progress.refresh(heap);
  CHECK(ProgressRig::isMarked(heap));
  rig.sim.advanceHost(2 * kLongNs);
  rig.progress.refresh(heap);
  CHECK(rig.complete(heap, freed));
}

TEST_CASE("of a forgotten stream its end tells, and the stream is not asked", "[engine][part]") {
  ProgressRig rig;
  const Stream stream = rig.busyStream();
  Heap& heap = rig.heapOf(stream);
  const std::uint64_t freed = rig.freeIn(heap);
  rig.streams.forgetStream(stream);
  rig.sim.destroyStream(stream).orThrow();
  CHECK(rig.progress.answers(stream));
  CHECK_FALSE(rig.progress.idle(stream));
  rig.progress.refresh(heap);
  CHECK_FALSE(rig.complete(heap, freed));
  rig.sim.advanceHost(2 * kLongNs);
  CHECK(rig.progress.idle(stream));
  rig.progress.refreshByEvent(heap);
  CHECK(rig.complete(heap, freed));
  CHECK(rig.sim.callsOnDeadStreams() == 0);
}

TEST_CASE("where stamps run out while a mark is made, what was freed is marked anew",
          "[engine][part]") {
  ProgressRig rig;
  Heap heap(rig.pool, rig.busyStream(), rig.pool.heapOptions(), rig.totals, UINT32_MAX - 1);
  rig.freeIn(heap);
  rig.device.before = [&](Call call) {
    if (call != Call::kRecordEvent) return;
    rig.device.before = nullptr;
    const MutexLock lock(heap.mutex());
    CHECK(heap.completion().ranOut());
    (void)heap.endedEpoch();
  };
  const std::uint64_t events = countOf(rig.sim, Call::kCreateEvent);
  rig.progress.refresh(heap);
  CHECK(countOf(rig.sim, Call::kCreateEvent) == events + 1);
  rig.progress.refresh(heap);
  CHECK(countOf(rig.sim, Call::kCreateEvent) == events + 2);
  Parts::audit(heap);
  rig.sim.advanceHost(2 * kLongNs);
  const std::uint64_t before = Parts::epochOf(heap) - 1;
  rig.progress.refresh(heap);
  CHECK(rig.complete(heap, before));
}

}  // namespace cistern::test
