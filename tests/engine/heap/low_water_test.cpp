// When it is low water: at what a heap fell to before, once it no longer grows.
#include "allocator/engine/heap/low_water.hpp"

#include <string>
#include <utility>

#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

/// Up to `high` and down to `low`, as often as that; true if the last fall was to low water.
bool round(LowWater& low_water, std::uint64_t high, std::uint64_t low, int times = 1) {
  bool reached = false;
  for (int i = 0; i < times; ++i) {
    low_water.rise(high);
    reached = low_water.fall(low);
  }
  return reached;
}

}  // namespace

TEST_CASE("a heap is at low water where it comes to again", "[engine][part]") {
  LowWater low_water;
  CHECK_FALSE(round(low_water, 1000, 100));
  CHECK(round(low_water, 1000, 100));
  CHECK_FALSE(low_water.fall(110));
  CHECK(low_water.fall(101));
  CHECK(low_water.fall(0));
}

TEST_CASE("an empty heap is at low water from the start, and one that only grows is not",
          "[engine][part]") {
  LowWater low_water;
  for (std::uint64_t busy = 1; busy < 1000; busy += 7) low_water.rise(busy);
  CHECK_FALSE(low_water.fall(994));
  LowWater other;
  other.rise(0);
  other.rise(100);
  CHECK(other.fall(0));
}

TEST_CASE("what a heap began with is forgotten when it has doubled", "[engine][part]") {
  LowWater low_water;
  CHECK(round(low_water, 100, 10, 2));
  low_water.rise(1000);
  CHECK_FALSE(low_water.fall(10));
  CHECK_FALSE(round(low_water, 1000, 500));
  CHECK(round(low_water, 1000, 10));  // it is, still, when it comes to be so again
}

TEST_CASE("a low that does not come again is forgotten", "[engine][part]") {
  LowWater low_water;
  CHECK_FALSE(round(low_water, 1000, 10));
  CHECK_FALSE(round(low_water, 1000, 500, 1000));
  CHECK(round(low_water, 1000, 500, 2000));
}

TEST_CASE("a heap that goes on falling is at low water again now and then", "[engine][part]") {
  LowWater low_water;
  CHECK(round(low_water, 1000, 400, 2));
  low_water.noteReached(400);
  CHECK_FALSE(low_water.fall(399));
  CHECK_FALSE(low_water.fall(351));
  CHECK(low_water.fall(350));
}

TEST_CASE("each round after a low water sees low water at the same moments", "[engine][part]") {
  LowWater low_water;
  CHECK_FALSE(round(low_water, 1000, 100));
  std::string seen[3];
  for (std::string& one : seen) {
    constexpr std::pair<std::uint64_t, std::uint64_t> kSteps[] = {
        {600, 300}, {1000, 200}, {900, 400}, {1000, 100}};
    for (const auto& [high, low] : kSteps) {
      const bool reached = round(low_water, high, low);
      if (reached) low_water.noteReached(low);
      one += reached ? 'x' : '.';
    }
  }
  CHECK(seen[0] == "...x");
  CHECK(seen[1] == seen[0]);
  CHECK(seen[2] == seen[0]);
}

}  // namespace cistern::test
