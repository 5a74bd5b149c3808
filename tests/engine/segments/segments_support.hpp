// What the tests of the backing by segments share. At the end all is idle, and goes back.
#pragma once

#include <string>

#include "allocator/engine/segments/segment_backing.hpp"
#include "tests/engine/parts_support.hpp"

namespace cistern::test {

struct SegmentsRig : Parts {
  explicit SegmentsRig(sim::SimConfig config = simOf(kGiB), std::uint64_t most = 16 * kGiB,
                       const std::string& conf = "")
      : Parts(std::move(config)), options(Options::parse(conf)) {
    limit.set(most);
  }
  ~SegmentsRig() {
    (void)backing.releaseIdle(heaps.all());
    CHECK(takenOf(sim) == 0);
    CHECK(limit.reserved() == 0);
  }

  Request request(std::uint64_t bytes) { return rules.request(bytes, heap.stream(), &pool); }
  Block& grown(std::uint64_t bytes) { return *backing.grow(heap, request(bytes)); }

  const Options options;
  Limit limit;
  SegmentMap map;
  SegmentRecords records;
  PinnedSegments pinned;
  std::atomic<Address> places{Address{1} << 50};
  std::atomic<std::uint64_t> tick{0};
  SegmentBacking backing{device, options, limit, map, records, pinned, places, tick};
  Heap& heap = heapOf(stream());
};

}  // namespace cistern::test
