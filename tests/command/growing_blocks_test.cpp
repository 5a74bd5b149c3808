// The model of one expandable segment: best fit within what is mapped, and growth at its lowest
// gap.
#include "interop/command/peers/growing_blocks.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "allocator/base/bytes.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using command::GrowingBlocks;

constexpr Address kRangeBegin = 16 * kGiB;
constexpr std::uint64_t kPage = 20 * kMiB;

/// A range of ten pages, of which only so many can be mapped at once.
struct Range {
  explicit Range(std::uint64_t can_map = 10 * kPage) : most(can_map) {}

  std::uint64_t most;
  std::uint64_t mapped = 0;
  GrowingBlocks blocks{kRangeBegin,
                       10 * kPage,
                       kPage,
                       {[this](Address, std::uint64_t bytes) {
                          if (mapped + bytes > most) return false;
                          mapped += bytes;
                          return true;
                        },
                        [this](Address, std::uint64_t bytes) { mapped -= bytes; }}};

  /// Where the block lies in the range, from reuse or else from growth.
  std::uint64_t take(std::uint64_t bytes) {
    auto found = blocks.reuse(bytes);
    if (!found) found = blocks.grow(bytes);
    blocks.audit();
    REQUIRE(found);
    return *found - kRangeBegin;
  }
  void give(std::uint64_t offset) {
    blocks.free(kRangeBegin + offset);
    blocks.audit();
  }
};

}  // namespace

TEST_CASE("a growing range maps whole pages, and what is left of them serves the next") {
  Range range;
  CHECK(range.take(12 * kMiB) == 0);
  CHECK(range.mapped == kPage);
  CHECK(range.take(8 * kMiB) == 12 * kMiB);
  CHECK(range.mapped == kPage);
  CHECK(range.take(30 * kMiB) == 20 * kMiB);
  CHECK(range.mapped == 3 * kPage);
}

TEST_CASE("a growing range extends the free block at its end") {
  Range range;
  CHECK(range.take(30 * kMiB) == 0);
  CHECK(range.take(25 * kMiB) == 30 * kMiB);
  CHECK(range.mapped == 3 * kPage);
}

TEST_CASE("the block that can still grow counts for as much as it can become") {
  Range range;
  CHECK(range.take(16 * kMiB) == 0);
  CHECK(range.take(14 * kMiB) == 16 * kMiB);  // 10 MiB are left, with unmapped space behind them
  range.give(0);
  CHECK(range.take(9 * kMiB) == 0);
}

TEST_CASE("release unmaps whole pages in free blocks only, and they are mapped again in place") {
  Range range;
  range.take(30 * kMiB);
  range.take(30 * kMiB);
  range.take(40 * kMiB);
  range.give(30 * kMiB);  // from the middle of the second page to the end of the third
  range.blocks.release();
  range.blocks.audit();
  CHECK(range.mapped == 4 * kPage);
  CHECK(range.take(10 * kMiB) == 30 * kMiB);
  CHECK(range.take(20 * kMiB) == 40 * kMiB);
  CHECK(range.mapped == 5 * kPage);
}

TEST_CASE("a range that can map no more says so, and what it mapped is free") {
  Range range(2 * kPage);
  range.take(10 * kMiB);
  CHECK_FALSE(range.blocks.grow(60 * kMiB));
  range.blocks.audit();
  CHECK(range.take(30 * kMiB) == 10 * kMiB);
}

TEST_CASE("random requests leave the blocks of a growing range whole") {
  std::mt19937 random(7);
  Range range(7 * kPage);
  std::vector<Address> held;
  for (int i = 0; i < 3'000; ++i) {
    if (random() % 2 == 0 && !held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      range.blocks.free(held.back());
      held.pop_back();
    } else {
      const std::uint64_t bytes = 512 * (1 + random() % 20'000);
      auto found = range.blocks.reuse(bytes);
      if (!found) found = range.blocks.grow(bytes);
      if (found) held.push_back(*found);
      if (!found) range.blocks.release();
    }
    range.blocks.audit();
  }
  for (const Address address : held) range.blocks.free(address);
  range.blocks.release();
  range.blocks.audit();
  CHECK(range.mapped == 0);
}

}  // namespace cistern::test
