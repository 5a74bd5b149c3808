// A heap's epochs, at the end of their numbers.
#include "allocator/engine/heap/heap.hpp"

#include "allocator/engine/engine.hpp"
#include "tests/engine/engine_support.hpp"

namespace cistern::test {

TEST_CASE("epochs that run out of numbers are counted anew, and mark nothing", "[engine][part]") {
  sim::SimDevice device;
  Options options;
  options.backing = Backing::kSegments;
  Engine core(device, options, kGiB);
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
  known.endMark(Answer::kNotYet, heap.endedEpoch(), false, nullptr);
  CHECK(heap.endedEpoch().epoch == UINT32_MAX - 1);
  heap.release(*blocks[5], 0);
  CHECK(known.ranOut());
  heap.audit();

  const std::uint32_t ended = heap.endedEpoch().epoch;
  heap.audit();
  CHECK(known.isAsked());
  known.passOldest(Answer::kReached);
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

}  // namespace cistern::test
