#include "allocator/layout/free_index.hpp"

#include <algorithm>
#include <deque>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "allocator/layout/address_heap.hpp"
#include "tests/support/catch.hpp"

namespace cistern {
namespace {

// Free blocks outside any layout, and the index under test beside a sorted set of the same.
class IndexedBlocks {
 public:
  Block& insert(std::uint32_t granules, std::uint64_t granule) {
    Block& block = blocks_.emplace_back();
    block.granule = granule & ((std::uint64_t{1} << 48) - 1);
    block.granules = granules;
    block.setState(BlockState::kFree);
    index.insert(block);
    sorted.insert({granules, granule, &block});
    return block;
  }
  void remove(Block& block) {
    index.remove(block);
    sorted.erase({block.granules, std::uint64_t{block.granule}, &block});
  }
  Block* bestFit(std::uint32_t granules) const {
    const auto best = sorted.lower_bound({granules, 0, nullptr});
    return best == sorted.end() ? nullptr : std::get<2>(*best);
  }

  FreeIndex index;
  std::set<std::tuple<std::uint32_t, std::uint64_t, Block*>> sorted;

 private:
  std::deque<Block> blocks_;
};

enum class Order { kAscending, kDescending, kAlternating, kFromTheMiddle };

std::vector<std::uint64_t> granulesInOrder(Order order, std::uint64_t count) {
  std::vector<std::uint64_t> granules;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t half = i / 2, other = i % 2;
    granules.push_back(order == Order::kAscending    ? i
                       : order == Order::kDescending ? count - 1 - i
                       : order == Order::kAlternating
                           ? (other ? count - 1 - half : half)
                           : (other ? count / 2 - 1 - half : count / 2 + half));
  }
  return granules;
}

constexpr Order kOrders[] = {Order::kAscending, Order::kDescending, Order::kAlternating,
                             Order::kFromTheMiddle};
constexpr std::uint32_t kLarge = 100'000;  // in a bin of mixed sizes

TEST_CASE("bins tile all sizes in ascending order, one a size below 2 MiB") {
  FreeIndex::Bin before = FreeIndex::binOf(1);
  for (std::uint32_t granules = 2; granules < 1'000'000; ++granules) {
    const FreeIndex::Bin bin = FreeIndex::binOf(granules);
    const auto flat = [](FreeIndex::Bin b) { return b.row * FreeIndex::kColumns + b.column; };
    const bool exact = granules < 4096;
    REQUIRE(flat(bin) - flat(before) <= 1);
    if (exact) REQUIRE(flat(bin) - flat(before) == 1);
    before = bin;
  }
  CHECK(FreeIndex::binOf(UINT32_MAX).row == FreeIndex::kRows - 1);
  CHECK(FreeIndex::binOf(UINT32_MAX).column == FreeIndex::kColumns - 1);
}

TEST_CASE("a bin keeps its invariants and its lowest address in any order of inserting") {
  const std::uint32_t granules = GENERATE(7u, kLarge);
  for (Order order : kOrders) {
    IndexedBlocks blocks;
    for (std::uint64_t granule : granulesInOrder(order, 300)) {
      blocks.insert(granules, granule * granules + 5);
      blocks.index.audit();
      REQUIRE(blocks.index.bestFit(granules) == blocks.bestFit(granules));
    }
    while (Block* best = blocks.index.bestFit(1)) {
      REQUIRE(best == blocks.bestFit(1));
      blocks.remove(*best);
      blocks.index.audit();
    }
    CHECK(blocks.sorted.empty());
  }
}

TEST_CASE("removing from anywhere keeps a bin's invariants") {
  const std::uint32_t granules = GENERATE(7u, kLarge);
  for (Order order : kOrders) {
    IndexedBlocks blocks;
    std::vector<Block*> inside;
    for (std::uint64_t granule : granulesInOrder(order, 200))
      inside.push_back(&blocks.insert(granules, granule * granules));
    std::mt19937 random(3);
    std::shuffle(inside.begin(), inside.end(), random);
    for (Block* block : inside) {
      blocks.remove(*block);
      blocks.index.audit();
      REQUIRE(blocks.index.bestFit(granules) == blocks.bestFit(granules));
    }
  }
}

TEST_CASE("no right spine of a heap is longer than a logarithm", "[long]") {
  for (Order order : kOrders) {
    IndexedBlocks blocks;
    for (std::uint64_t granule : granulesInOrder(order, 65'535)) blocks.insert(3, granule * 3);
    CHECK(address_heap::rankOf(blocks.index.bestFit(3)) <= 16);
    blocks.index.audit();
  }
}

// With a budget of blocks to look past, the only fit would be missed here.
TEST_CASE("the one block that fits is found among hundreds too small for it") {
  IndexedBlocks blocks;
  for (std::uint64_t i = 0; i < 500; ++i) blocks.insert(kLarge + std::uint32_t(i % 50), i * kLarge);
  Block& fit = blocks.insert(kLarge + 50, 1);
  CHECK(blocks.index.bestFit(kLarge + 50) == &fit);
  Block& far = blocks.insert(50 * kLarge, 2);
  CHECK(blocks.index.bestFit(kLarge + 50) == &fit);
  CHECK(blocks.index.bestFit(kLarge + 51) == &far);
  CHECK(blocks.index.bestFit(50 * kLarge + 1) == nullptr);
}

TEST_CASE("the best fit is exact over all sizes and any mixture") {
  IndexedBlocks blocks;
  std::vector<Block*> inside;
  std::mt19937_64 random(11);
  const auto anySize = [&] { return std::uint32_t(random() >> (random() % 31 + 33)) + 1; };
  for (std::uint64_t step = 0; step < 30'000; ++step) {
    if (inside.size() < 2'000 && random() % 2 == 0) {
      inside.push_back(&blocks.insert(anySize(), step));
    } else if (!inside.empty()) {
      std::swap(inside[random() % inside.size()], inside.back());
      blocks.remove(*inside.back());
      inside.pop_back();
    }
    const std::uint32_t granules = anySize();
    REQUIRE(blocks.index.bestFit(granules) == blocks.bestFit(granules));
    REQUIRE(blocks.index.blocks() == blocks.sorted.size());
    if (step % 1'000 == 0) blocks.index.audit();
  }
}

TEST_CASE("the first bin whose best is accepted serves, in order of size") {
  IndexedBlocks blocks;
  Block& low = blocks.insert(10, 100);
  Block& high = blocks.insert(10, 200);  // not the best of its bin
  Block& larger = blocks.insert(12, 300);
  Block& large = blocks.insert(kLarge, 400);
  const auto is = [](const Block& wanted) { return [&](const Block& b) { return &b == &wanted; }; };
  const auto any = [](const Block&) { return true; };
  const auto none = [](const Block&) { return false; };
  CHECK(blocks.index.bestFitIf(9, any) == &low);
  CHECK(blocks.index.bestFitIf(9, is(larger)) == &larger);
  CHECK(blocks.index.bestFitIf(9, is(large)) == &large);
  CHECK(blocks.index.bestFitIf(9, is(high)) == nullptr);
  CHECK(blocks.index.bestFitIf(11, any) == &larger);
  CHECK(blocks.index.bestFitIf(9, none) == nullptr);
}

TEST_CASE("a search with a condition looks at a bounded number of bins") {
  IndexedBlocks blocks;
  for (std::uint32_t i = 1; i <= 1'000; ++i) blocks.insert(i, i * 1'000);
  unsigned asked = 0;
  const auto refuse = [&](const Block&) { return ++asked == 0; };
  CHECK(blocks.index.bestFitIf(1, refuse) == nullptr);
  CHECK(asked == FreeIndex::kSearchBudget);
}

TEST_CASE("the largest block is known, whatever its bin") {
  IndexedBlocks blocks;
  CHECK(blocks.index.largest() == nullptr);
  CHECK(blocks.index.ofLargestBin() == nullptr);
  std::mt19937_64 random(5);
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::uint64_t granules = i < 100 ? random() % 4'000 + 1 : kLarge + random() % 1'000;
    blocks.insert(std::uint32_t(granules), i);
    REQUIRE(blocks.index.largest()->granules == std::get<0>(*blocks.sorted.rbegin()));
    const FreeIndex::Bin bin = FreeIndex::binOf(blocks.index.ofLargestBin()->granules);
    REQUIRE(bin.column == FreeIndex::binOf(blocks.index.largest()->granules).column);
    REQUIRE(blocks.index.ofLargestBin()->links.parent == nullptr);
  }
}

}  // namespace
}  // namespace cistern
