// A heap's epochs, at the end of their numbers; the map from addresses to segments.
#include "allocator/engine/heap/heap.hpp"

#include "allocator/engine/backing/segment_map.hpp"
#include "allocator/engine/core.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {

TEST_CASE("epochs that run out of numbers are counted anew, and mark nothing", "[engine]") {
  sim::SimDevice device;
  Options options;
  options.backing = Backing::kSegments;
  Core core(device, options, kGiB);
  Heap heap(core.default_pool, Stream{1}, 0, core.totals, UINT32_MAX - 3);
  const MutexLock lock(heap.mutex());
  HeapSegment segment;
  segment.base = 0x10'0000'0000;
  segment.bytes = 2 * kMiB;
  heap.add(segment, Heap::From::kDevice);
  std::vector<Block*> blocks;
  for (int i = 0; i < 8; ++i)
    blocks.push_back(heap.allocate(core.rules.request(kKiB, Stream{1}, &core.default_pool)));

  using Answer = Completion::Answer;
  Completion& known = heap.completion();
  heap.release(*blocks[1], 0);
  known.noteComplete(heap.endedEpoch());
  heap.release(*blocks[3], 0);
  CHECK(known.beginMark());
  known.endMark(Answer::kNotYet, heap.endedEpoch(), false, nullptr, 0);
  CHECK(heap.endedEpoch().epoch == UINT32_MAX - 1);
  heap.release(*blocks[5], 0);
  CHECK(known.ranOut());
  heap.audit();

  const std::uint32_t ended = heap.endedEpoch().epoch;
  heap.audit();
  CHECK(known.isAsked());
  known.passOldest(Answer::kReached, 0);
  CHECK(blocks[1]->epoch <= known.completed());
  CHECK(blocks[3]->epoch > known.completed());
  CHECK(blocks[5]->epoch > known.completed());
  CHECK(known.anyUnmarked());
  CHECK(blocks[5]->epoch <= ended);
  CHECK(ended < known.now().epoch);
  for (std::size_t i : {0u, 2u, 4u, 6u, 7u}) heap.release(*blocks[i], 0);
  heap.remove(segment, true);
  heap.audit();
}

TEST_CASE("two segments that meet within a granule are told apart", "[engine]") {
  constexpr std::uint64_t kBase = 0x7f00'0000'0000;
  SegmentMap map;
  HeapSegment low, high, far;
  low.device_base = kBase + 512;
  low.bytes = 2 * kMiB;
  high.device_base = low.device_base + low.bytes;
  high.bytes = 6 * kMiB;
  far.device_base = (std::uint64_t{1} << 57) - 2 * kMiB;
  far.bytes = 2 * kMiB;
  for (HeapSegment* segment : {&high, &low, &far}) map.insert(*segment);
  for (HeapSegment* segment : {&high, &low, &far}) {
    const Address base = segment->device_base;
    for (std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{511}, segment->bytes / 2,
                                 segment->bytes - 512, segment->bytes - 1}) {
      CHECK(map.find(base + offset) == segment);
    }
  }
  CHECK(map.find(kBase) == nullptr);
  CHECK(map.find(0) == nullptr);
  CHECK(map.find(~Address{0}) == nullptr);
  map.erase(low);
  CHECK(map.find(low.device_base) == nullptr);
  CHECK(map.find(high.device_base) == &high);
  map.insert(low);
  map.erase(high);
  CHECK(map.find(low.device_base + low.bytes - 1) == &low);
  CHECK(map.find(high.device_base + 4 * kMiB) == nullptr);
}

TEST_CASE("a range that is one segment's for good is found wherever it was extended", "[engine]") {
  constexpr Address kGiB2 = Address{2} << 30;
  constexpr Address kFrom = 0x7f00'0000'0000 - 6 * kMiB;  // its ends share 2 GiB with others
  constexpr AddressRange kOwn{kFrom, kFrom + 2 * kGiB2 + 10 * kMiB};
  SegmentMap map;
  HeapSegment range, below, above;
  range.device_base = kFrom;
  below.bytes = above.bytes = 2 * kMiB;
  below.device_base = kFrom - below.bytes;
  above.device_base = kOwn.to;
  map.insert(below);
  map.insert(above);
  const std::size_t leaves = map.hostBytes();
  for (const Address to :
       {kFrom + 2 * kMiB, kFrom + 64 * kMiB, kFrom + kGiB2 + 8 * kMiB, kOwn.to}) {
    map.extend(range, kOwn, kFrom + range.bytes, to);
    range.bytes = to - kFrom;
    for (Address at = kFrom; at < to; at += 2 * kMiB) {
      if (map.find(at) != &range || map.find(at + 2 * kMiB - 1) != &range) FAIL(at - kFrom);
    }
    CHECK(map.find(below.device_base) == &below);
    CHECK(map.find(above.device_base) == &above);
  }
  CHECK(map.hostBytes() == leaves);  // what it has whole costs nothing
  map.erase(above);
  CHECK(map.find(kOwn.to) == nullptr);
  CHECK(map.find(kOwn.to - 1) == &range);
}

}  // namespace cistern::test
