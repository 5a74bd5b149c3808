// What the tests of the backing by segments share. At the end all is idle, and goes back.
#pragma once

#include <string>

#include "allocator/engine/engine.hpp"
#include "tests/engine/parts_support.hpp"

namespace cistern::test {

struct SegmentsRig : Parts {
  explicit SegmentsRig(sim::SimConfig config = simOf(kGiB), std::uint64_t most = 16 * kGiB,
                       const std::string& conf = "")
      : Parts(std::move(config)), engine(device, Options::parse(conf), 0) {
    limit.set(most);
  }
  ~SegmentsRig() {
    (void)segments.release(heaps.all(), UINT64_MAX);
    CHECK(takenOf(sim) == 0);
    CHECK(limit.reserved() == 0);
  }

  Request request(std::uint64_t bytes) { return rules.request(bytes, heap.stream(), &pool); }
  Block& grown(std::uint64_t bytes) { return *segments.grow(heap, request(bytes)); }

  Engine engine;  ///< only the backing of it, and what that works on
  SegmentBacking& segments = engine.segments;
  Limit& limit = engine.limit;
  SegmentMap& map = engine.map;
  std::atomic<std::uint64_t>& tick = engine.tick;
  Heap& heap = heapOf(stream());
};

}  // namespace cistern::test
