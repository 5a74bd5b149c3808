// Frees that come late, and what of a program stays as it is.
#include <cstdlib>
#include <vector>

#include "interop/programs/generate.hpp"
#include "interop/programs/kinds.hpp"
#include "tests/support/catch.hpp"

namespace cistern::programs::testing {
namespace {

struct Places {
  std::vector<std::uint64_t> sizes;  ///< of the allocations, in order
  std::vector<std::int64_t> freed;   ///< by allocation, the number of the event; -1: never
};

Places placesOf(const recording::Recording& trace) {
  Places places;
  places.freed.resize(trace.allocations, -1);
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const recording::Event& event = trace.events[i];
    if (event.kind == recording::EventKind::kAllocate) {
      places.sizes.push_back(event.value);
    } else {
      places.freed[event.value] = std::int64_t(i);
    }
  }
  return places;
}

double shareLater(const Places& late, const Places& in_time) {
  double later = 0, all = 0;
  for (std::size_t i = 0; i < in_time.freed.size(); ++i) {
    all += in_time.freed[i] >= 0;
    later += late.freed[i] > in_time.freed[i];
  }
  return later / all;
}

}  // namespace

TEST_CASE("a program and its twin with jitter have the same allocations, and as many frees") {
  for (const char* name : {"stable:1", "streams:1"}) {
    INFO(name);
    const Recipe recipe = parseRecipes(name).at(0);
    const recording::Recording in_time = generate(recipe), late = withJitter(in_time, 25, 1);
    audit(late);
    const Places before = placesOf(in_time), after = placesOf(late);
    CHECK(after.sizes == before.sizes);
    CHECK(late.streams.size() == in_time.streams.size());
    CHECK(late.events.back().time_us == in_time.events.back().time_us);
    REQUIRE(late.events.size() == in_time.events.size());
    for (std::size_t i = 0; i < before.freed.size(); ++i) {
      REQUIRE((before.freed[i] < 0) == (after.freed[i] < 0));
      REQUIRE(std::abs(after.freed[i] - before.freed[i]) <= 4);
    }
    CHECK(shareLater(after, before) > 0.15);
    CHECK(shareLater(after, before) < 0.35);
  }
}

TEST_CASE("jitter of no free changes nothing, and that of all frees moves most of them") {
  const recording::Recording in_time = generate(parseRecipes("stable:1").at(0));
  CHECK(withJitter(in_time, 0, 1).events == in_time.events);
  CHECK(shareLater(placesOf(withJitter(in_time, 100, 1)), placesOf(in_time)) > 0.5);
}

TEST_CASE("jitter is the same each time, and another one with another seed") {
  const recording::Recording in_time = generate(parseRecipes("stable:1").at(0));
  CHECK(withJitter(in_time, 25, 7).events == withJitter(in_time, 25, 7).events);
  CHECK_FALSE(withJitter(in_time, 25, 7).events == withJitter(in_time, 25, 8).events);
}

}  // namespace cistern::programs::testing
