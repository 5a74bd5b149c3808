// The set of heaps by number, against the standard library's.
#include <random>
#include <set>

#include "allocator/engine/heap/offering_heaps.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

bool sameAs(const HeapSet& heaps, const std::set<std::size_t>& expected, std::size_t count) {
  for (std::size_t number = 0; number < count; ++number) {
    if (heaps.contains(number) != expected.contains(number)) return false;
    const auto it = expected.lower_bound(number);
    if (heaps.next(number) != (it == expected.end() ? HeapSet::kNone : *it)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("the next heap is found from every number, as a set would", "[engine][part]") {
  std::mt19937 random(7);
  for (const std::size_t count : {1u, 63u, 64u, 65u, 4095u, 4097u, 9000u}) {
    CAPTURE(count);
    HeapSet heaps;
    heaps.reserve(count);
    std::set<std::size_t> expected;
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 100; ++i) {
        const std::size_t number = random() % count;
        if (random() % 2) {
          heaps.insert(number);
          expected.insert(number);
        } else {
          heaps.erase(number);
          expected.erase(number);
        }
      }
      REQUIRE(sameAs(heaps, expected, count));
    }
  }
}

TEST_CASE("a heap is found across words and groups that are empty", "[engine][part]") {
  constexpr std::size_t kFar = 64 * 64 * 3 + 5;
  for (const std::size_t lone : {std::size_t{0}, std::size_t{63}, std::size_t{64},
                                 std::size_t{4095}, std::size_t{4096}, kFar}) {
    HeapSet heaps;
    heaps.reserve(kFar + 1);
    heaps.insert(lone);
    for (const std::size_t from : {std::size_t{0}, lone / 2, lone}) CHECK(heaps.next(from) == lone);
    CHECK(heaps.next(lone + 1) == HeapSet::kNone);
    heaps.erase(lone);
    CHECK(heaps.next(0) == HeapSet::kNone);
  }
}

TEST_CASE("numbers beyond what there is room for are none, and more room keeps what is there",
          "[engine][part]") {
  HeapSet heaps;
  CHECK(heaps.next(0) == HeapSet::kNone);
  std::set<std::size_t> expected;
  for (std::size_t number = 0; number < 5000; ++number) {
    heaps.reserve(number + 1);
    if (number % 3 != 0) continue;
    heaps.insert(number);
    expected.insert(number);
  }
  CHECK(sameAs(heaps, expected, 5000));
  CHECK(heaps.next(1'000'000) == HeapSet::kNone);
  CHECK(heaps.hostBytes() < 4096);
}

}  // namespace cistern::test
