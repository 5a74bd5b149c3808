// A heap's epochs, at the end of the stamps for them.
#include "allocator/engine/heap/heap.hpp"

#include "allocator/engine/core/core.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {

TEST_CASE("where stamps run out, what is not complete counts as used until then",
          "[engine][part]") {
  sim::SimDevice device;
  Options options;
  options.backing = Backing::kSegments;
  Core core(device, options, kGiB);
  Heap heap(core.default_pool, Stream{1}, core.default_pool.heapOptions(), core.totals,
            UINT32_MAX - 3);
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
  known.beginMark();
  known.endMark(Answer::kNotYet, heap.endedEpoch(), false, nullptr);
  CHECK(heap.endedEpoch() == UINT32_MAX - 1);
  heap.release(*blocks[5], 0);
  CHECK(known.ranOut());
  heap.audit();

  const std::uint64_t ended = heap.endedEpoch();
  const auto used = [&](int block) { return known.epochOf(blocks[std::size_t(block)]->epoch); };
  heap.audit();
  CHECK(known.isAsked());
  known.passOldest(Answer::kReached);
  CHECK(used(1) <= known.completed());
  CHECK(used(3) > known.completed());
  CHECK(used(5) > known.completed());
  CHECK(known.anyUnmarked());
  CHECK(used(5) <= ended);
  CHECK(ended < known.now());
  for (std::size_t i : {0u, 2u, 4u, 6u, 7u}) heap.release(*blocks[i], 0);
  heap.remove(segment, true);
  heap.audit();
}

}  // namespace cistern::test
