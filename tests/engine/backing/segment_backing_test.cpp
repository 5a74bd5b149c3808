// Segments that come from the device and go back to it.
#include "allocator/engine/backing/segment_backing.hpp"

#include <new>

#include "tests/engine/backing/segments_support.hpp"
#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::test {

TEST_CASE("a heap grows by a segment of the usual size, which is found by its addresses",
          "[engine][part]") {
  SegmentsRig rig;
  Block& block = rig.grown(5 * kMiB);
  CHECK(takenOf(rig.sim) == 20 * kMiB);
  CHECK(rig.limit.reserved() == 20 * kMiB);
  CHECK(block.bytes() == 5 * kMiB);
  HeapSegment& segment = segmentOf(block);
  CHECK(segment.heap == &rig.heap);
  CHECK(rig.map.find(deviceAddress(block)) == &segment);
  CHECK(rig.map.find(segment.deviceEnd() - 1) == &segment);
  CHECK((rig.segments.taken() == 1 && rig.segments.returned() == 0));
  Parts::release(block);
}

TEST_CASE("a heap grows by just what need be, unless that is the usual size", "[engine][part]") {
  SegmentsRig rig;
  Block* const block = rig.segments.grow(rig.heap, rig.request(5 * kMiB), true);
  REQUIRE(block);
  CHECK(takenOf(rig.sim) == 6 * kMiB);
  CHECK(rig.segments.grow(rig.heap, rig.request(12 * kMiB), true) == nullptr);
  CHECK(rig.segments.grow(rig.heap, rig.request(kKiB), true) == nullptr);
  CHECK(takenOf(rig.sim) == 6 * kMiB);
  Parts::release(*block);
}

TEST_CASE("beyond the limit the device is not asked", "[engine][part]") {
  SegmentsRig rig(simOf(kGiB), 30 * kMiB);
  Block& block = rig.grown(20 * kMiB);
  CHECK(rig.segments.grow(rig.heap, rig.request(12 * kMiB)) == nullptr);
  CHECK(rig.calls(Call::kMalloc) == 1);
  CHECK(rig.limit.reserved() == 20 * kMiB);
  CHECK(rig.core.answers.error().empty());
  Parts::release(block);
}

TEST_CASE("what the device refuses changes nothing but what it is said to have said",
          "[engine][part]") {
  SegmentsRig rig(simOf(30 * kMiB));
  Block& block = rig.grown(20 * kMiB);
  const auto refused = [&] {
    return rig.segments.grow(rig.heap, rig.request(12 * kMiB)) == nullptr;
  };
  CHECK(refused());  // leaves a record for the next
  const std::size_t host_bytes = rig.segments.hostBytes();
  for (int i = 0; i < 20; ++i) CHECK(refused());
  CHECK_FALSE(rig.core.answers.error().empty());
  CHECK(rig.limit.reserved() == 20 * kMiB);
  CHECK(rig.segments.hostBytes() == host_bytes);
  Block& fits = rig.grown(10 * kMiB);
  CHECK(rig.core.answers.error().empty());
  for (Block* one : {&block, &fits}) Parts::release(*one);
}

TEST_CASE("idle segments go back, as many as are wanted, and are not found any more",
          "[engine][part]") {
  SegmentsRig rig;
  Block* blocks[4];
  for (Block*& block : blocks) block = &rig.grown(20 * kMiB);
  const Address address = deviceAddress(*blocks[0]);
  for (Block* block : blocks) {
    if (block != blocks[3]) Parts::release(*block);
  }
  CHECK(rig.segments.release({&rig.heap}, 21 * kMiB) == 40 * kMiB);
  CHECK(takenOf(rig.sim) == 40 * kMiB);
  CHECK(rig.segments.release({&rig.heap}, UINT64_MAX) == 20 * kMiB);
  CHECK(rig.segments.release({&rig.heap}, UINT64_MAX) == 0);
  CHECK(takenOf(rig.sim) == 20 * kMiB);  // one is in use
  CHECK(rig.map.find(address) == nullptr);
  CHECK(rig.limit.reserved() == 20 * kMiB);
  Parts::release(*blocks[3]);
}

TEST_CASE("a segment stays until the last of its footprints is gone, and is in each once",
          "[engine][part]") {
  SegmentsRig rig;
  Block &block = rig.grown(5 * kMiB),
        &beside = *Parts::tryAllocate(rig.heap, rig.request(kMiB * 2));
  Block& other = rig.grown(20 * kMiB);
  REQUIRE(&segmentOf(beside) == &segmentOf(block));
  Footprint first, second;
  for (const Block* one : {&block, &beside, &other})
    rig.segments.hold(*one, first, Footprint::kKind, 1);
  rig.segments.hold(beside, second, Footprint::kKind, 2);
  CHECK(first.segments == std::vector<HeapSegment*>{&segmentOf(block), &segmentOf(other)});
  for (Block* one : {&block, &beside, &other}) Parts::release(*one);
  CHECK(rig.segments.release({&rig.heap}, UINT64_MAX) == 0);
  rig.segments.letGo(first, Footprint::kKind);
  CHECK(first.segments.empty());
  CHECK(rig.segments.release({&rig.heap}, UINT64_MAX) == 20 * kMiB);
  rig.segments.letGo(second, Footprint::kKind);
  CHECK(rig.segments.release({&rig.heap}, UINT64_MAX) == 20 * kMiB);
}

TEST_CASE("a segment that a graph and an export hold stays until both have let go",
          "[engine][part]") {
  SegmentsRig rig;
  Block& block = rig.grown(20 * kMiB);
  Footprint footprint;
  ExportHold first, second;
  rig.segments.hold(block, footprint, Footprint::kKind, 1);
  rig.segments.hold(block, first, ExportHold::kKind, 0);
  rig.segments.hold(block, second, ExportHold::kKind, 0);
  Parts::release(block);
  rig.segments.letGo(footprint, Footprint::kKind);
  rig.segments.letGo(first, ExportHold::kKind);
  CHECK(first.segments.empty());
  CHECK(rig.segments.isHeld(block));
  CHECK(rig.segments.release({&rig.heap}, UINT64_MAX) == 0);
  rig.segments.letGo(second, ExportHold::kKind);
  CHECK(rig.segments.release({&rig.heap}, UINT64_MAX) == 20 * kMiB);
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)

TEST_CASE("a segment that there is no host memory to bind is not held, and others' hold",
          "[engine][part]") {
  for (int allowed = 0; allowed < 4; ++allowed) {
    SegmentsRig rig;
    Block &block = rig.grown(20 * kMiB), &held = rig.grown(20 * kMiB);
    Footprint footprint, others;
    rig.segments.hold(held, others, Footprint::kKind, 1);
    try {
      int left = allowed;
      const AtHostAllocations few([&] {
        if (left-- == 0) throw std::bad_alloc();
      });
      rig.segments.hold(block, footprint, Footprint::kKind, 2);
      rig.segments.hold(held, footprint, Footprint::kKind, 2);
    } catch (const std::bad_alloc&) {
    }
    for (const Block* one : {&block, &held}) {
      const bool own = std::ranges::count(footprint.segments, &segmentOf(*one)) == 1;
      CHECK(rig.segments.isHeld(*one) == (own || one == &held));
    }
    rig.segments.letGo(footprint, Footprint::kKind);
    CHECK_FALSE(rig.segments.isHeld(block));
    CHECK(rig.segments.isHeld(held));
    rig.segments.letGo(others, Footprint::kKind);
    for (Block* one : {&block, &held}) Parts::release(*one);
  }
}

#endif

TEST_CASE("a segment that the device will not take back is as good as before", "[engine][part]") {
  SegmentsRig rig;
  Block& block = rig.grown(20 * kMiB);
  const Address address = deviceAddress(block);
  Parts::release(block);
  rig.sim.faults().failAll(Call::kFree, ErrorKind::kOther);
  CHECK(rig.segments.release({&rig.heap}, UINT64_MAX) == 0);
  CHECK_FALSE(rig.core.answers.error().empty());
  CHECK((rig.segments.returned() == 0 && rig.limit.reserved() == 20 * kMiB));
  CHECK(rig.map.find(address) != nullptr);
  Parts::audit(rig.heap);
  Block* const again = Parts::tryAllocate(rig.heap, rig.request(20 * kMiB));
  REQUIRE(again);
  CHECK(deviceAddress(*again) == address);
  Parts::release(*again);
  rig.sim.faults().clear();
  CHECK(rig.segments.release({&rig.heap}, UINT64_MAX) == 20 * kMiB);
}

TEST_CASE("above the threshold what was idle for longer than most goes, the oldest first",
          "[engine][part]") {
  SegmentsRig rig;
  Block* blocks[4];
  for (Block*& block : blocks) block = &rig.grown(20 * kMiB);
  const std::uint64_t freed_at[4] = {10, 2, 11, 3};
  for (std::size_t i = 0; i < 4; ++i) {
    const MutexLock lock(rig.heap.mutex());
    rig.heap.release(*blocks[i], freed_at[i]);
  }
  rig.tick = 12;
  rig.segments.collectGarbage({&rig.heap}, 80 * kMiB);
  CHECK(takenOf(rig.sim) == 80 * kMiB);
  rig.segments.collectGarbage({&rig.heap}, 60 * kMiB);
  CHECK(takenOf(rig.sim) == 60 * kMiB);
  const MutexLock lock(rig.heap.mutex());
  for (Segment* s = rig.heap.layout(SizeKind::kLarge).segments(); s; s = s->next)
    CHECK(static_cast<HeapSegment*>(s)->idle_since != 2);
}

TEST_CASE("younger segments come before older ones in a layout, or after", "[engine][part]") {
  for (const bool old_first : {true, false}) {
    SegmentsRig rig(simOf(kGiB), kGiB,
                    old_first ? "prefer_old_segments:true" : "prefer_old_segments:false");
    Block& first = rig.grown(20 * kMiB);
    Block& second = rig.grown(20 * kMiB);
    CHECK((first.address() < second.address()) == old_first);
    for (Block* block : {&first, &second}) Parts::release(*block);
  }
}

}  // namespace cistern::test
