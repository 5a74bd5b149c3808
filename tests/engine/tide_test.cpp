// When it is low tide: at what a heap fell to before, once it no longer grows.
#include "allocator/engine/tide.hpp"

#include <string>
#include <utility>

#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

/// Up to `high` and down to `low`, as often as that; true if the last fall was to low tide.
bool round(Tide& tide, std::uint64_t high, std::uint64_t low, int times = 1) {
  bool ebbs = false;
  for (int i = 0; i < times; ++i) {
    tide.rise(high);
    ebbs = tide.fall(low);
  }
  return ebbs;
}

}  // namespace

TEST_CASE("it is low tide where a heap comes to again", "[engine]") {
  Tide tide;
  CHECK_FALSE(round(tide, 1000, 100));
  CHECK(round(tide, 1000, 100));
  CHECK_FALSE(tide.fall(110));
  CHECK(tide.fall(101));
  CHECK(tide.fall(0));
}

TEST_CASE("an empty heap is at low tide from the start, and one that only grows is not",
          "[engine]") {
  Tide tide;
  for (std::uint64_t busy = 1; busy < 1000; busy += 7) tide.rise(busy);
  CHECK_FALSE(tide.fall(994));
  Tide other;
  other.rise(0);
  other.rise(100);
  CHECK(other.fall(0));
}

TEST_CASE("what a heap began with is forgotten when it has doubled", "[engine]") {
  Tide tide;
  CHECK(round(tide, 100, 10, 2));
  tide.rise(1000);
  CHECK_FALSE(tide.fall(10));
  CHECK_FALSE(round(tide, 1000, 500));
  CHECK(round(tide, 1000, 10));  // it is, still, when it comes to be so again
}

TEST_CASE("a low that does not come again is forgotten", "[engine]") {
  Tide tide;
  CHECK_FALSE(round(tide, 1000, 10));
  CHECK_FALSE(round(tide, 1000, 500, 1000));
  CHECK(round(tide, 1000, 500, 2000));
}

TEST_CASE("while it goes on falling it is low tide again now and then", "[engine]") {
  Tide tide;
  CHECK(round(tide, 1000, 400, 2));
  tide.noteEbb(400);
  CHECK_FALSE(tide.fall(399));
  CHECK_FALSE(tide.fall(351));
  CHECK(tide.fall(350));
}

TEST_CASE("each round after a low tide sees it at the same moments", "[engine]") {
  Tide tide;
  CHECK_FALSE(round(tide, 1000, 100));
  std::string seen[3];
  for (std::string& one : seen) {
    constexpr std::pair<std::uint64_t, std::uint64_t> kSteps[] = {
        {600, 300}, {1000, 200}, {900, 400}, {1000, 100}};
    for (const auto& [high, low] : kSteps) {
      const bool ebbs = round(tide, high, low);
      if (ebbs) tide.noteEbb(low);
      one += ebbs ? 'x' : '.';
    }
  }
  CHECK(seen[0] == "...x");
  CHECK(seen[1] == seen[0]);
  CHECK(seen[2] == seen[0]);
}

}  // namespace cistern::test
