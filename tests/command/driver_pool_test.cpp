// The model of the driver's pool, against what the pool of driver 580 did on an H200.
#include "interop/command/peers/driver_pool.hpp"

#include "allocator/base/bytes.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using command::DriverPool;
using command::FreeRuns;

constexpr Address kPoolBegin = 32 * kGiB;
constexpr Stream kFirst{1}, kSecond{2};

/// A pool on a device of so many chunks; work up to `done` is complete.
struct Pool {
  explicit Pool(std::uint64_t chunks = 1'000) : left(chunks) {}

  std::uint64_t left;
  std::uint64_t done = ~std::uint64_t{0};
  std::uint64_t use = 0;
  DriverPool pool{kPoolBegin,
                  kTiB,
                  {[this](Address, std::uint64_t) { return left > 0 && left-- > 0; },
                   [this](Address, std::uint64_t) { ++left; },
                   [this](Stream, std::uint64_t at) { return at <= done; }}};

  std::uint64_t take(std::uint64_t bytes, Stream stream = kFirst) {
    const auto found = pool.allocate(bytes, stream);
    REQUIRE(found);
    return *found - kPoolBegin;
  }
  void give(std::uint64_t offset, std::uint64_t bytes, Stream stream = kFirst) {
    pool.free(kPoolBegin + offset, bytes, stream, ++use);
  }
};

}  // namespace

TEST_CASE("runs join their neighbours, and are cut out of their middle") {
  FreeRuns runs;
  runs.add(4096, {512, 1, 7});
  runs.add(5120, {512, 2, 3});
  runs.add(4608, {512, 3, 9});
  REQUIRE(runs.runs().size() == 1);
  CHECK(runs.runs().at(4096).bytes == 1536);
  CHECK(runs.runs().at(4096).use == 9);
  runs.cutOut(4608, 5120);
  CHECK(runs.runs().size() == 2);
  CHECK(runs.bestFit(512) == Address(4096));  // both are as old, so the lower one
  CHECK_FALSE(runs.bestFit(1024));
}

TEST_CASE("the driver's pool grows by chunks of 32 MiB, behind what is free at its end") {
  Pool pool;
  CHECK(pool.take(512) == 0);
  CHECK(pool.pool.mappedBytes() == 32 * kMiB);
  CHECK(pool.take(3 * kMiB) == 512);
  CHECK(pool.take(40 * kMiB) == 3 * kMiB + 512);
  CHECK(pool.pool.mappedBytes() == 64 * kMiB);
}

TEST_CASE("the driver's pool takes the best fit, and of equals what was freed first") {
  Pool pool;
  pool.take(4 * kMiB);  // 0
  pool.take(kMiB);      // 4
  pool.take(8 * kMiB);  // 5
  pool.take(kMiB);      // 13
  pool.take(6 * kMiB);  // 14
  pool.take(kMiB);      // 20
  pool.give(0, 4 * kMiB);
  pool.give(5 * kMiB, 8 * kMiB);
  pool.give(14 * kMiB, 6 * kMiB);
  CHECK(pool.take(3'500 * kKiB) == 0);
  CHECK(pool.take(5 * kMiB) == 14 * kMiB);
  CHECK(pool.take(5 * kMiB) == 5 * kMiB);
  CHECK(pool.take(512 * kKiB) == 3'500 * kKiB);
}

TEST_CASE("another stream gets what was freed once its work is complete, and not before") {
  Pool pool;
  pool.take(20 * kMiB);
  pool.done = 0;
  pool.give(0, 20 * kMiB);
  CHECK(pool.take(20 * kMiB, kSecond) == 20 * kMiB);
  CHECK(pool.pool.mappedBytes() == 64 * kMiB);
  pool.done = 1;
  CHECK(pool.take(30 * kMiB, kSecond) != 0);  // 24 MiB are left, and the 20 do not touch them
  pool.take(20 * kMiB, kSecond);
  CHECK(pool.pool.mappedBytes() == 96 * kMiB);
}

TEST_CASE("the stream itself gets what it freed at once, joined with free neighbours") {
  Pool pool;
  pool.take(20 * kMiB);
  pool.take(8 * kMiB);
  pool.done = 0;
  pool.give(20 * kMiB, 8 * kMiB);
  CHECK(pool.take(12 * kMiB) == 20 * kMiB);
  CHECK(pool.pool.mappedBytes() == 32 * kMiB);
}

TEST_CASE("the driver's pool moves chunks that lie wholly free before it makes new ones") {
  Pool pool(6);
  pool.take(96 * kMiB);
  pool.take(kMiB);
  pool.give(0, 96 * kMiB);
  CHECK(pool.take(120 * kMiB) == 97 * kMiB);
  CHECK(pool.pool.mappedBytes() == 4 * 32 * kMiB);
  CHECK(pool.take(40 * kMiB) == 0);  // mapped once more where the hole was
  CHECK_FALSE(pool.pool.allocate(200 * kMiB, kFirst));
}

}  // namespace cistern::test
