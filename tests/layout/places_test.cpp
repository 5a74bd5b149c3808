#include "allocator/layout/places.hpp"

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

namespace cistern {
namespace {

TEST_CASE("places follow each other, and those that stay are passed over", "[layout]") {
  Places places(100, 200);
  CHECK(places.take(30) == 100);
  CHECK(places.take(30) == 130);
  CHECK(places.take(40) == 160);
  CHECK_THROWS_AS(places.take(1), std::bad_alloc);
  places.free(130);
  CHECK(places.take(10) == 130);
  CHECK(places.take(20) == 140);
  CHECK_THROWS_AS(places.take(1), std::bad_alloc);
  places.free(100);
  places.free(160);
  places.free(5);  // never taken
  CHECK_THROWS_AS(places.take(41), std::bad_alloc);
  CHECK(places.take(40) == 160);  // behind the last, while there is room
  CHECK(places.take(30) == 100);
  CHECK_THROWS_AS(places.take(1), std::bad_alloc);
}

TEST_CASE("the mirror of a place is as far from the end, and of that the place", "[layout]") {
  const Places places(100, 200);
  CHECK(places.mirrored(100, 30) == 170);
  CHECK(places.mirrored(170, 30) == 100);
}

TEST_CASE("what is taken and given back at random never overlaps", "[layout]") {
  Places places(1, 1000);
  std::vector<std::pair<Address, std::uint64_t>> taken;
  std::uint64_t seed = 1;
  const auto random = [&](std::uint64_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % below;
  };
  for (int i = 0; i < 20'000; ++i) {
    if (random(2) == 0 && !taken.empty()) {
      const std::size_t at = random(taken.size());
      places.free(taken[at].first);
      taken.erase(taken.begin() + std::ptrdiff_t(at));
      continue;
    }
    const std::uint64_t bytes = 1 + random(60);
    try {
      const Address place = places.take(bytes);
      REQUIRE(place >= 1);
      REQUIRE(place + bytes <= 1000);
      for (const auto& [other, size] : taken)
        REQUIRE((place >= other + size || other >= place + bytes));
      taken.emplace_back(place, bytes);
    } catch (const std::bad_alloc&) {
    }
  }
}

}  // namespace
}  // namespace cistern
