// What the tests of the backing by segments share. At the end all is idle, and goes back.
#pragma once

#include <string>

#include "allocator/engine/backing/segment_backing.hpp"
#include "tests/engine/parts_support.hpp"

namespace cistern::test {

struct SegmentsRig : Parts {
  explicit SegmentsRig(sim::SimConfig config = simOf(kGiB), std::uint64_t most = 16 * kGiB,
                       const std::string& conf = "")
      : Parts(std::move(config)), core(device, Options::parse(conf), 0) {
    limit.set(most);
  }
  ~SegmentsRig() {
    (void)segments.release(heaps.all(), UINT64_MAX);
    CHECK(takenOf(sim) == 0);
    CHECK(limit.reserved() == 0);
  }

  Request request(std::uint64_t bytes) { return rules.request(bytes, heap.stream(), &pool); }
  Block& grown(std::uint64_t bytes) { return *segments.grow(heap, request(bytes)); }

  Core core;
  SegmentBacking segments{core};
  Limit& limit = core.limit;
  SegmentMap& map = core.map;
  std::atomic<std::uint64_t>& tick = core.tick;
  Heap& heap = heapOf(stream());
};

}  // namespace cistern::test
