// Which segments graphs hold in place.
#include "allocator/engine/capture/pins.hpp"

#include <new>

#include "allocator/engine/heap/heap.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/host_memory/host_memory.hpp"

namespace cistern::test {

TEST_CASE("a segment is pinned until the last of its holders lets go", "[engine][part]") {
  PinnedSegments pinned;
  HeapSegment segment, other;
  Pins first, second;
  CHECK_FALSE(pinned.pinned(segment));
  pinned.pin(segment, 1, first);
  pinned.pin(segment, 2, second);
  CHECK(pinned.pinned(segment));
  CHECK_FALSE(pinned.pinned(other));
  pinned.unpin(*first.segments.at(0));
  CHECK(pinned.pinned(segment));
  pinned.unpin(*second.segments.at(0));
  CHECK_FALSE(pinned.pinned(segment));
}

TEST_CASE("a holder pins a segment once, however many blocks it has there", "[engine][part]") {
  PinnedSegments pinned;
  HeapSegment segment, other;
  Pins pins;
  for (int i = 0; i < 3; ++i) pinned.pin(segment, 7, pins);
  pinned.pin(other, 7, pins);
  CHECK(pins.segments == std::vector<HeapSegment*>{&segment, &other});
  pinned.unpin(segment);
  CHECK_FALSE(pinned.pinned(segment));
  CHECK(pinned.pinned(other));
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)

TEST_CASE("a segment that there is no host memory to pin is not pinned, and others' pins hold",
          "[engine][part]") {
  for (int allowed = 0; allowed < 4; ++allowed) {
    PinnedSegments pinned;
    HeapSegment segment, held;
    Pins pins, others;
    pinned.pin(held, 1, others);
    try {
      int left = allowed;
      const AtHostAllocations few([&] {
        if (left-- == 0) throw std::bad_alloc();
      });
      pinned.pin(segment, 2, pins);
      pinned.pin(held, 2, pins);
    } catch (const std::bad_alloc&) {
    }
    for (HeapSegment* one : {&segment, &held}) {
      const bool own = std::ranges::count(pins.segments, one) == 1;
      CHECK(pinned.pinned(*one) == (own || one == &held));
    }
    for (HeapSegment* one : pins.segments) pinned.unpin(*one);
    CHECK_FALSE(pinned.pinned(segment));
    CHECK(pinned.pinned(held));
  }
}

#endif

}  // namespace cistern::test
