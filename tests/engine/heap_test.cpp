// A heap's epochs, at the end of their numbers.
#include "allocator/engine/heap.hpp"

#include "tests/engine/engine_support.hpp"

namespace cistern::test {

TEST_CASE("epochs that run out of numbers are counted anew, and mark nothing", "[engine][part]") {
  const SizeRules rules{Options{}};
  Pool pool(true, rules, false);
  Totals totals;
  Heap heap(pool, Stream{1}, 0, totals);
  const MutexLock lock(heap.mutex());
  HeapSegment segment;
  segment.base = 0x10'0000'0000;
  segment.bytes = 2 * kMiB;
  heap.add(segment, Heap::From::kDevice);
  std::vector<Block*> blocks;
  for (int i = 0; i < 8; ++i)
    blocks.push_back(heap.allocate(rules.request(kKiB, Stream{1}, &pool)));

  heap.epoch = UINT32_MAX - 3;
  heap.release(*blocks[1], 0);
  heap.completion.completed = heap.endEpoch();
  heap.release(*blocks[3], 0);
  heap.completion.marks[heap.completion.under_way++].epoch = heap.endEpoch();
  CHECK(heap.endEpoch() == UINT32_MAX - 1);
  heap.release(*blocks[5], 0);
  CHECK(heap.epoch == UINT32_MAX);
  heap.audit();

  const std::uint32_t ended = heap.endEpoch();
  heap.audit();
  CHECK(blocks[1]->epoch <= heap.completion.completed);
  CHECK(blocks[3]->epoch > heap.completion.completed);
  CHECK(blocks[3]->epoch > heap.completion.marks[0].epoch);
  CHECK(blocks[5]->epoch > heap.completion.marks[0].epoch);
  CHECK(heap.completion.freed);
  CHECK(blocks[5]->epoch <= ended);
  CHECK(ended < heap.epoch);
  for (std::size_t i : {0u, 2u, 4u, 6u, 7u}) heap.release(*blocks[i], 0);
  heap.remove(segment, true);
  heap.audit();
}

}  // namespace cistern::test
