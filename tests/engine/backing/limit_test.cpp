// How much may be taken from the device.
#include "allocator/engine/ground/limit.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {

TEST_CASE("no more than the limit is admitted, to the byte", "[engine][part]") {
  Limit limit;
  CHECK_FALSE(limit.admit(1));
  limit.set(100);
  CHECK(limit.admit(60));
  CHECK(limit.left() == 40);
  CHECK_FALSE(limit.admit(41));
  CHECK(limit.reserved() == 60);
  CHECK(limit.admit(40));
  CHECK(limit.left() == 0);
  limit.noteReturned(60);
  CHECK(limit.left() == 60);
}

TEST_CASE("a limit below what is reserved admits nothing until enough is given back",
          "[engine][part]") {
  Limit limit;
  limit.set(100);
  CHECK(limit.admit(80));
  limit.set(50);
  CHECK(limit.reserved() == 80);
  CHECK(limit.left() == 0);
  CHECK_FALSE(limit.admit(1));
  limit.noteReturned(31);
  CHECK(limit.left() == 1);
  CHECK(limit.admit(1));
  CHECK_FALSE(limit.admit(1));
}

TEST_CASE("threads together never take more than the limit, and lose nothing of it",
          "[engine][part][threads]") {
  constexpr std::uint64_t kMost = 10;
  Limit limit;
  limit.set(kMost);
  std::atomic<std::uint64_t> held{0};
  std::atomic<int> too_much{0};
  onThreads(4, [&](std::size_t index) {
    const std::uint64_t bytes = index + 1;
    for (int i = 0; i < 5'000; ++i) {
      if (!limit.admit(bytes)) continue;
      too_much += held.fetch_add(bytes) + bytes > kMost;
      held -= bytes;
      limit.noteReturned(bytes);
    }
  });
  CHECK(too_much == 0);
  CHECK(limit.reserved() == 0);
  CHECK(limit.left() == kMost);
}

}  // namespace cistern::test
