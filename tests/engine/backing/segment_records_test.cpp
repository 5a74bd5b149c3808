// Records of segments.
#include "allocator/engine/backing/segment_records.hpp"

#include <algorithm>
#include <vector>

#include "tests/support/catch.hpp"

namespace cistern::test {

TEST_CASE("records of segments are used again", "[engine][part]") {
  SegmentRecords records;
  HeapSegment* const first = &records.take();
  const std::size_t bytes = records.hostBytes();
  records.give(*first);
  for (int i = 0; i < 1'000; ++i) records.give(records.take());
  CHECK(&records.take() == first);
  CHECK(records.hostBytes() == bytes);
  std::vector<HeapSegment*> many;
  for (int i = 0; i < 1'000; ++i) many.push_back(&records.take());
  std::sort(many.begin(), many.end());
  CHECK(std::unique(many.begin(), many.end()) == many.end());
  CHECK_FALSE(std::binary_search(many.begin(), many.end(), first));
  CHECK(records.hostBytes() > bytes);
}

}  // namespace cistern::test
