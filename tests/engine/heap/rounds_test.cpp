// Where the heap placed the same request before: found, followed, lost, and found again.
#include "allocator/engine/heap/rounds.hpp"

#include <numeric>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using Sizes = std::vector<std::uint32_t>;

/// A round of so many different requests.
Sizes roundOf(std::uint32_t count, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  Sizes sizes(count);
  for (std::uint32_t& size : sizes) size = std::uint32_t(random() % 1'000'000 + 1);
  return sizes;
}

/// Places that tell the round and the number in it.
constexpr Address placeOf(std::uint64_t round, std::uint64_t number) {
  return (Address{round + 1} << 40) + Address{number + 1} * 4096;
}

/// Notes the round, and says how many of its requests had places before they were noted.
std::size_t play(Rounds& rounds, const Sizes& sizes, std::uint64_t round) {
  std::size_t known = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    known += rounds.placeOf(sizes[i]) != 0 ? 1 : 0;
    rounds.note(sizes[i], placeOf(round, i), 0);
    rounds.search();
  }
  return known;
}

}  // namespace

TEST_CASE("places are known once a program has repeated itself for two rounds", "[engine][part]") {
  Rounds rounds;
  const Sizes sizes = roundOf(100);
  CHECK(play(rounds, sizes, 0) == 0);
  (void)play(rounds, sizes, 1);
  (void)play(rounds, sizes, 2);
  for (std::uint64_t round = 3; round < 6; ++round) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      CHECK(rounds.placeOf(sizes[i]) == placeOf(round - 2, i));
      CHECK(rounds.placeOf(sizes[i] + 1) == 0);
      rounds.note(sizes[i], placeOf(round, i), 0);
    }
  }
}

TEST_CASE("few requests that are alike are no round", "[engine][part]") {
  Rounds rounds;
  CHECK(play(rounds, Sizes(60, 4096), 0) == 0);
  CHECK_FALSE(rounds.repeats());
}

TEST_CASE("what never repeats has no places", "[engine][part]") {
  Rounds rounds;
  CHECK(play(rounds, roundOf(50'000), 0) == 0);
}

TEST_CASE("a request more or less does not end the round", "[engine][part]") {
  const Sizes sizes = roundOf(200);
  for (const int change : {-2, -1, 1, 2}) {
    Rounds rounds;
    for (std::uint64_t round = 0; round < 4; ++round) (void)play(rounds, sizes, round);
    Sizes changed = sizes;
    for (int i = 0; i < change; ++i) changed.insert(changed.begin() + 100, 77u + std::uint32_t(i));
    for (int i = 0; i > change; --i) changed.erase(changed.begin() + 100);
    CHECK(play(rounds, changed, 4) >= 196);
    CHECK(rounds.repeats());
  }
}

TEST_CASE("another program is followed after a while, and the first found again",
          "[engine][part]") {
  Rounds rounds;
  const Sizes one = roundOf(150), other = roundOf(90, 2);
  for (std::uint64_t round = 0; round < 5; ++round) (void)play(rounds, one, round);
  CHECK(play(rounds, other, 5) == 0);
  for (std::uint64_t round = 6; round < 10; ++round) (void)play(rounds, other, round);
  CHECK(play(rounds, other, 10) == 90);
  for (std::uint64_t round = 11; round < 16; ++round) (void)play(rounds, one, round);
  CHECK(play(rounds, one, 16) == 150);
}

TEST_CASE("layers that are alike are not taken for the step that repeats them", "[engine][part]") {
  // A step of 12 layers of 9 requests, up and down, with something between.
  const Sizes layer = roundOf(9), between = roundOf(20, 2);
  Sizes step;
  for (int i = 0; i < 12; ++i) step.insert(step.end(), layer.begin(), layer.end());
  step.insert(step.end(), between.begin(), between.end());
  for (int i = 0; i < 12; ++i) step.insert(step.end(), layer.rbegin(), layer.rend());
  Rounds rounds;
  for (std::uint64_t round = 0; round < 6; ++round) (void)play(rounds, step, round);
  std::size_t right = 0;
  for (std::size_t i = 0; i < step.size(); ++i) {
    right += rounds.placeOf(step[i]) == placeOf(4, i) ? 1 : 0;
    rounds.note(step[i], placeOf(6, i), 0);
  }
  CHECK(right == step.size());
}

TEST_CASE("a round longer than half of what is kept is not followed, one as long is",
          "[engine][part]") {
  for (const std::uint32_t length : {8'000u, 9'000u}) {
    Rounds rounds;
    std::size_t known = 0;
    for (std::uint64_t round = 0; round < 7; ++round) known = play(rounds, roundOf(length), round);
    CHECK(known == (length == 8'000 ? length : 0));
  }
}

TEST_CASE("what another stream's heap noted is forgotten with it", "[engine][part]") {
  Rounds rounds;
  const Sizes sizes = roundOf(100);
  for (std::uint64_t round = 0; round < 5; ++round) (void)play(rounds, sizes, round);
  rounds.forget();
  CHECK(rounds.hostBytes() == 0);
  CHECK(play(rounds, sizes, 0) == 0);
}

TEST_CASE("a heap is to freeze before the request that finds the least in use", "[engine][part]") {
  Rounds rounds;
  const Sizes sizes = roundOf(100);
  const auto busyAt = [](std::size_t i) { return std::uint32_t(i == 37 ? 5 : 10 + i); };
  const auto note = [&](std::uint64_t round, std::size_t i) {
    rounds.note(sizes[i], placeOf(round, i), busyAt(i));
    rounds.search();
  };
  for (std::uint64_t round = 0; round < 4; ++round)
    for (std::size_t i = 0; i < sizes.size(); ++i) note(round, i);
  REQUIRE(rounds.repeats());
  for (std::size_t i = 0; i < 50; ++i) note(4, i);
  CHECK(!rounds.isFreezeDue(0));
  rounds.planFreeze();
  for (std::size_t i = 50; i < 137; ++i) {
    CHECK(!rounds.isFreezeDue(busyAt(i % sizes.size())));
    note(4, i % sizes.size());
  }
  CHECK(rounds.isFreezeDue(5));
  CHECK(rounds.guides());
  rounds.freeze(4096);
  CHECK(rounds.frozen());
  CHECK(!rounds.isFreezeDue(0));
  CHECK(!rounds.outgrowsFreeze(109 + 109 / 8));
  CHECK(rounds.outgrowsFreeze(110 + 110 / 8));
}

/// Whether the heap has rested when so many requests of the round come between two misses.
static bool restsFor(std::size_t requests, Rounds& rounds, const Sizes& round) {
  (void)rounds.noteMiss();
  for (std::size_t i = 0; i < requests; ++i) rounds.note(round[i % round.size()], placeOf(9, i), 0);
  const bool rested = rounds.noteMiss();
  while (requests++ % round.size() != 0) rounds.note(round[(requests - 1) % round.size()], 1, 0);
  return rested;
}

TEST_CASE("a heap has rested after two rounds without a miss, of the longest", "[engine][part]") {
  Rounds rounds;
  const Sizes sizes = roundOf(100), shorter = roundOf(70, 2);
  for (std::uint64_t round = 0; round < 4; ++round) (void)play(rounds, sizes, round);
  REQUIRE(rounds.repeats());
  CHECK(!restsFor(200, rounds, sizes));
  CHECK(restsFor(201, rounds, sizes));
  // A shorter round takes its place. To have rested still takes the longer one.
  for (std::uint64_t round = 0; round < 8; ++round) (void)play(rounds, shorter, round);
  REQUIRE(rounds.repeats());
  CHECK(!restsFor(200, rounds, shorter));
  CHECK(restsFor(201, rounds, shorter));
}

}  // namespace cistern::test
