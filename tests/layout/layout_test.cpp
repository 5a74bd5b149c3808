#include "allocator/layout/layout.hpp"

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/host_memory/host_memory.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern {
namespace {

constexpr Address kBase = Address{1} << 40;

Segment segmentOf(std::uint32_t granules, Address base = kBase) {
  Segment segment;
  segment.base = base;
  segment.bytes = std::uint64_t{granules} << kGranuleShift;
  return segment;
}

TEST_CASE("an empty layout serves nothing and finds nothing") {
  Layout layout;
  CHECK(layout.allocate(1) == nullptr);
  CHECK(layout.find(kBase) == nullptr);
  CHECK(layout.freeBlocks().bestFit(1) == nullptr);
  CHECK(layout.segments() == nullptr);
  layout.audit();
}

TEST_CASE("segments are listed while they are in, and leave from anywhere in the list") {
  Layout layout;
  std::vector<Segment> all;
  for (Address i = 0; i < 3; ++i) all.push_back(segmentOf(100, kBase + (i << 30)));
  const int first_out = GENERATE(0, 1, 2);
  for (Segment& segment : all) layout.add(segment, 7);
  CHECK(layout.totals().segments == 3);
  for (int i = 0; i < 3; ++i) {
    Segment& segment = all[std::size_t((first_out + i) % 3)];
    CHECK(segment.whollyFree());
    CHECK(segment.first->epoch == 7);
    layout.remove(segment);
    layout.audit();
  }
  CHECK(layout.segments() == nullptr);
  CHECK(layout.totals().segment_bytes == 0);
  CHECK(layout.allocate(1) == nullptr);
}

TEST_CASE("a removed segment can come back elsewhere") {
  Layout layout;
  Segment segment = segmentOf(10);
  layout.add(segment, 0);
  layout.remove(segment);
  segment.base += 1 << 20;
  layout.add(segment, 0);
  CHECK(layout.allocate(10)->address() == segment.base);
  CHECK_FALSE(segment.whollyFree());
  layout.audit();
}

TEST_CASE("a block is carved from the low end, exactly") {
  Layout layout;
  Segment segment = segmentOf(100);
  layout.add(segment, 3);
  const Block* a = layout.allocate(10);
  const Block* b = layout.allocate(1);
  CHECK(a->address() == segment.base);
  CHECK(a->bytes() == 10 * kGranule);
  CHECK(b->address() == a->end());
  CHECK(b->next->isFree());
  CHECK(b->next->bytes() == 89 * kGranule);
  CHECK(b->next->epoch == 3);
  layout.audit();
}

TEST_CASE("only a live block is found, and only by its first address") {
  Layout layout;
  Segment segment = segmentOf(100);
  layout.add(segment, 0);
  CHECK(layout.find(segment.base) == nullptr);
  Block* block = layout.allocate(10);
  const Address address = block->address();
  CHECK(layout.find(address) == block);
  CHECK(layout.find(address + kGranule) == nullptr);
  CHECK(layout.find(address + 1) == nullptr);
  CHECK(layout.find(block->end()) == nullptr);  // the free rest starts there
  layout.setPending(*block);
  CHECK(layout.find(address) == nullptr);
  CHECK(layout.totals().busy_blocks == 1);
  layout.audit();
  layout.release(*block, 1);
  CHECK(layout.find(address) == nullptr);
  CHECK(segment.whollyFree());
}

TEST_CASE("every address of a segment is covered by one block, and no other address is") {
  Layout layout;
  Segment segment = segmentOf(100);
  layout.add(segment, 0);
  Block* a = layout.allocate(10);
  Block* b = layout.allocate(20);
  Block* c = layout.allocate(5);
  layout.release(*b, 1);
  layout.setPending(*c);
  CHECK(segment.covering(segment.base) == a);
  CHECK(segment.covering(a->end() - 1) == a);
  CHECK(segment.covering(a->end()) == a->next);
  CHECK(segment.covering(c->address() + 1) == c);
  CHECK(segment.covering(segment.end() - 1) == c->next);
  CHECK(segment.covering(segment.end()) == nullptr);
  CHECK(segment.covering(segment.base - 1) == nullptr);
  for (Address at = segment.base; at < segment.end(); at += kGranule / 2)
    CHECK(&layout.covering(segment, at) == segment.covering(at));
}

TEST_CASE("a coalesced block is as young as its youngest part") {
  Layout layout;
  Segment segment = segmentOf(30);
  layout.add(segment, 1);
  std::vector<Block*> blocks;
  for (int i = 0; i < 3; ++i) blocks.push_back(layout.allocate(10));
  const std::vector<std::size_t> order =
      GENERATE(std::vector<std::size_t>{0, 1, 2}, std::vector<std::size_t>{2, 1, 0},
               std::vector<std::size_t>{0, 2, 1}, std::vector<std::size_t>{1, 0, 2});
  std::uint32_t epoch = 5;
  Block* freed = nullptr;
  for (std::size_t i : order) {
    freed = layout.release(*blocks[i], epoch);
    CHECK(freed->epoch == epoch);
    layout.audit();
    epoch += 2;
  }
  CHECK(freed == segment.first);
  CHECK(freed->bytes() == segment.bytes);
  CHECK(segment.whollyFree());
}

TEST_CASE("what is left of a young free block is as young") {
  Layout layout;
  Segment segment = segmentOf(30);
  layout.add(segment, 1);
  layout.release(*layout.allocate(30), 9);
  CHECK(layout.allocate(10)->next->epoch == 9);
}

TEST_CASE("blocks of two segments that touch never become one") {
  Layout layout;
  Segment low = segmentOf(10), high = segmentOf(10, low.end());
  layout.add(low, 0);
  layout.add(high, 0);
  Block* a = layout.allocate(10);
  Block* b = layout.allocate(10);
  layout.release(*a, 1);
  layout.release(*b, 1);
  CHECK(low.first->bytes() == low.bytes);
  CHECK(high.first->bytes() == high.bytes);
  CHECK(layout.allocate(11) == nullptr);
  layout.audit();
}

TEST_CASE("a chosen free block serves as the best fit would have") {
  Layout layout({.min_remainder = 4});
  Segment small = segmentOf(20), large = segmentOf(50, kBase + (1 << 30));
  layout.add(small, 0);
  layout.add(large, 0);
  CHECK(layout.serves(*large.first, 50));
  CHECK_FALSE(layout.serves(*large.first, 51));
  const Block* block = layout.allocateFrom(*large.first, 30);
  CHECK(block->address() == large.base);
  CHECK(block->bytes() == 30 * kGranule);
  CHECK(layout.find(large.base) == block);
  const Block* rest = layout.allocateFrom(*block->next, 17);
  CHECK(rest->bytes() == 20 * kGranule);  // three would be left, too few to split off
  CHECK(rest->next == nullptr);
  CHECK(small.whollyFree());
  layout.audit();
}

TEST_CASE("blocks too large to split are kept for requests that nearly fill them") {
  Layout layout({.min_remainder = 1, .max_split = 100, .max_non_split_rounding = 10});
  Segment segment = segmentOf(150);
  layout.add(segment, 0);
  CHECK(layout.allocate(50) == nullptr);
  CHECK(layout.allocate(139) == nullptr);
  const Block* block = layout.allocate(140);
  REQUIRE(block != nullptr);
  CHECK(block->bytes() == segment.bytes);
  layout.audit();
}

TEST_CASE("totals count busy, split and whole memory exactly") {
  Layout layout;
  Segment segment = segmentOf(100), other = segmentOf(50, kBase + (1 << 30));
  layout.add(segment, 0);
  layout.add(other, 0);
  const auto totalsAre = [&](std::uint64_t busy, std::uint64_t busy_granules, std::uint64_t split,
                             std::uint64_t split_granules) {
    const LayoutTotals t = layout.totals();
    CHECK(t.busy_blocks == busy);
    CHECK(t.busy_bytes == busy_granules * kGranule);
    CHECK(t.split_free_blocks == split);
    CHECK(t.split_free_bytes == split_granules * kGranule);
    CHECK(t.busy_bytes + layout.freeBlocks().bytes() == t.segment_bytes);
    layout.audit();
  };
  totalsAre(0, 0, 0, 0);
  Block* a = layout.allocateFrom(*segment.first, 10);
  totalsAre(1, 10, 1, 90);
  Block* b = layout.allocateFrom(*a->next, 90);
  totalsAre(2, 100, 0, 0);
  Block* c = layout.allocateFrom(*other.first, 50);
  totalsAre(3, 150, 0, 0);
  layout.release(*a, 1);
  totalsAre(2, 140, 1, 10);
  layout.setPending(*b);
  totalsAre(2, 140, 1, 10);
  layout.release(*b, 2);
  totalsAre(1, 50, 0, 0);
  layout.release(*c, 3);
  totalsAre(0, 0, 0, 0);
}

#if defined(CISTERN_COUNTS_HOST_MEMORY)
// The audit build audits verbs that must not fail, also while the host has no memory.
TEST_CASE("an audit takes no host memory") {
  Layout layout;
  Segment small = segmentOf(2'000), large = segmentOf(3'000'000, kBase + (Address{1} << 40));
  for (Segment* segment : {&small, &large}) layout.add(*segment, 0);
  std::vector<Block*> blocks;
  for (int i = 0; i < 200; ++i) blocks.push_back(layout.allocate(3));
  for (std::uint32_t i = 0; i < 100; ++i) blocks.push_back(layout.allocate(4'200 + i % 3 * 7'000));
  for (std::size_t i = 0; i < blocks.size(); i += 2) layout.release(*blocks[i], 0);
  Block* const free = layout.freeBlocks().largest();
  layout.prepareHoles(1);
  layout.punch(*free, free->address() + kGranule, free->address() + 2 * kGranule);
  const std::uint64_t before = test::hostAllocations();
  layout.audit();
  CHECK(test::hostAllocations() == before);
}
#endif

TEST_CASE("a million live blocks cost at most 128 bytes of host memory each") {
  constexpr std::size_t kLive = test::kSlowBuild ? 100'000 : 1'000'000;
  Layout layout;
  std::vector<std::unique_ptr<Segment>> segments;
  std::vector<Block*> live;
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(0, 11);
  Address next = kBase;
  const auto allocate = [&] {
    const auto granules =
        std::uint32_t(granulesFor(std::uint64_t(512 * std::exp2(exponent(random)))));
    Block* block = layout.allocate(granules);
    if (block) return block;
    segments.push_back(std::make_unique<Segment>(segmentOf(4096, next)));
    next = segments.back()->end();
    layout.add(*segments.back(), 0);
    return layout.allocate(granules);
  };
  live.reserve(kLive);
  while (live.size() < kLive) live.push_back(allocate());
  for (std::size_t i = 0; i < kLive / 2; ++i) {
    Block*& one = live[random() % kLive];
    layout.release(*one, 0);
    one = allocate();
  }
  CHECK(layout.totals().busy_blocks == kLive);
  CHECK(layout.hostBytes() <= 128 * kLive);
  layout.audit();
}

}  // namespace
}  // namespace cistern
