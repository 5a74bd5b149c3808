#include "interop/command/overflow/bus_bound.hpp"

#include <algorithm>
#include <random>

#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using command::leastHostBytes;
using command::Lifetime;

constexpr std::size_t kEvents = 8;

std::uint64_t livingAt(const std::vector<Lifetime>& lives, std::size_t event) {
  std::uint64_t bytes = 0;
  for (const Lifetime& life : lives)
    if (life.born <= event && event < life.ended) bytes += life.bytes;
  return bytes;
}

bool fits(const std::vector<Lifetime>& on_device, std::uint64_t capacity) {
  for (std::size_t event = 0; event < kEvents; ++event)
    if (livingAt(on_device, event) > capacity) return false;
  return true;
}

/// Tries each number of bytes of each block. The program's matrix has the ones of each column side
/// by side, so that an optimum in whole bytes exists.
std::uint64_t leastByTrying(std::vector<Lifetime> left, std::uint64_t capacity,
                            std::size_t block = 0) {
  if (block == left.size()) return fits(left, capacity) ? 0 : UINT64_MAX;
  std::uint64_t least = UINT64_MAX;
  for (std::uint64_t host = 0;; ++host, --left[block].bytes) {
    const std::uint64_t rest = leastByTrying(left, capacity, block + 1);
    if (rest != UINT64_MAX) least = std::min(least, host + rest);
    if (left[block].bytes == 0) return least;
  }
}

std::vector<Lifetime> randomLives(std::mt19937& random) {
  const auto upTo = [&](std::size_t most) { return std::size_t(random() % (most + 1)); };
  std::vector<Lifetime> lives(1 + upTo(4));
  for (Lifetime& life : lives) {
    life.bytes = 1 + upTo(3);
    life.born = upTo(kEvents - 1);
    life.ended = life.born + 1 + upTo(kEvents - 1 - life.born);
  }
  std::sort(lives.begin(), lives.end(),
            [](const Lifetime& a, const Lifetime& b) { return a.born < b.born; });
  return lives;
}

}  // namespace

TEST_CASE("the bound is what trying everything finds") {
  std::mt19937 random(7);
  for (int round = 0; round < 3'000; ++round) {
    const auto lives = randomLives(random);
    const std::uint64_t capacity = random() % 9;
    CAPTURE(round, capacity, lives.size());
    REQUIRE(leastHostBytes(lives, capacity) == leastByTrying(lives, capacity));
  }
}

TEST_CASE(
    "a program that fits has nothing in host memory, and one without a device has all there") {
  const std::vector<Lifetime> lives = {{100, 0, 4}, {50, 1, 3}, {20, 5, 8}};
  CHECK(leastHostBytes(lives, 150) == 0);
  CHECK(leastHostBytes(lives, 0) == 170);
  CHECK(leastHostBytes({}, 0) == 0);
}

TEST_CASE("the block that lives longest goes, once for all peaks that it lives through") {
  const std::vector<Lifetime> lives = {{40, 0, 8}, {60, 1, 3}, {60, 5, 7}};
  CHECK(leastHostBytes(lives, 60) == 40);
  CHECK(leastHostBytes(lives, 90) == 10);  // a part of it is enough
}

TEST_CASE("the order of births at one event does not matter") {
  const std::vector<Lifetime> lives = {{10, 0, 2}, {10, 0, 8}, {10, 1, 3}, {10, 4, 8}, {10, 4, 5}};
  std::vector<Lifetime> turned = lives;
  std::swap(turned[0], turned[1]);
  std::swap(turned[3], turned[4]);
  CHECK(leastHostBytes(lives, 10) == 30);
  CHECK(leastHostBytes(turned, 10) == 30);
}

TEST_CASE("a block that lives in several iterations counts in each") {
  // Weights of 40 live throughout; each iteration has 60 more, of which none fits.
  const std::vector<Lifetime> lives = {{40, 0, 8}, {60, 1, 3}, {60, 5, 7}};
  const std::vector<std::size_t> starts = {0, 4};
  const auto least = command::leastHostBytesByIteration(lives, starts, kEvents, 60);
  CHECK(least == std::vector<std::uint64_t>{40, 40});
  CHECK(command::leastHostBytesByIteration(lives, {0}, kEvents, 60) ==
        std::vector<std::uint64_t>{leastHostBytes(lives, 60)});
}

TEST_CASE("iterations together need no less than the whole, and no iteration more than its own") {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const auto lives = randomLives(random);
    const std::uint64_t capacity = random() % 9;
    const auto least = command::leastHostBytesByIteration(lives, {0, 3, 6}, kEvents, capacity);
    std::uint64_t sum = 0;
    for (const std::uint64_t bytes : least) sum += bytes;
    CAPTURE(round, capacity);
    REQUIRE(sum >= leastHostBytes(lives, capacity));
    REQUIRE(*std::max_element(least.begin(), least.end()) <= leastHostBytes(lives, capacity));
  }
}

}  // namespace cistern::test
