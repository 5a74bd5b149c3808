// Pinned memory of graphs.
#include "interop/torch/host_pools.hpp"

#include <set>
#include <thread>

#include "cistern/error.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using cistern_torch::HostPools;
using cistern_torch::TorchPoolId;

constexpr TorchPoolId kNone{0, 0}, kPool{0, 1}, kOther{0, 2};

struct Rig {
  HostPools pools;
  bool caught = true, captured = true, at_rest = true;
  std::vector<char> memory = std::vector<char>(8);
  std::set<void*> freed;

  void begin(TorchPoolId id) {
    pools.begin(
        id, [this] { return caught; }, [this] { return captured; });
  }
  void* block(std::size_t i) { return &memory[i]; }
  void settle() {
    pools.settle([this] { return at_rest; }, [this](void* block) { freed.insert(block); });
  }
};

}  // namespace

TEST_CASE("a pool keeps what a region of it has had until its last user is gone",
          "[torch][host_pools]") {
  Rig rig;
  rig.begin(kPool);
  CHECK(rig.pools.now() == kPool);
  rig.pools.allocated(rig.block(0), kPool, 1);
  rig.pools.allocated(rig.block(1), kPool, 1);
  CHECK(rig.pools.freed(rig.block(0)));
  rig.pools.end(kPool);
  CHECK(rig.pools.now() == kNone);

  rig.begin(kPool);  // another graph
  rig.pools.end(kPool);
  rig.pools.release(kPool);
  rig.settle();
  CHECK(rig.freed.empty());
  rig.pools.release(kPool);
  rig.settle();
  CHECK(rig.freed == std::set<void*>{rig.block(0)});
  CHECK_FALSE(rig.pools.freed(rig.block(1)));  // an ordinary block by now
}

TEST_CASE("what rests is free when the device has come to rest, and not in a capture",
          "[torch][host_pools]") {
  Rig rig;
  rig.begin(kPool);
  rig.pools.allocated(rig.block(0), kPool, 1);
  REQUIRE(rig.pools.freed(rig.block(0)));
  rig.pools.end(kPool);
  rig.pools.release(kPool);

  rig.begin(kOther);
  rig.settle();
  CHECK(rig.freed.empty());
  rig.pools.end(kOther);
  rig.at_rest = false;
  rig.settle();
  CHECK(rig.freed.empty());
  rig.at_rest = true;
  rig.settle();
  CHECK(rig.freed.size() == 1);
}

TEST_CASE("the pool's next request has what was freed and no copy has used",
          "[torch][host_pools]") {
  Rig rig;
  rig.begin(kPool);
  rig.begin(kOther);
  CHECK(rig.pools.take(kPool, 1) == nullptr);
  const std::size_t sizes[] = {64, 8, 32, 16};
  for (std::size_t i = 0; i < 4; ++i) rig.pools.allocated(rig.block(i), kPool, sizes[i]);
  rig.pools.used(rig.block(3));
  rig.pools.used(rig.block(7));  // nobody's
  for (std::size_t i = 0; i < 4; ++i) REQUIRE(rig.pools.freed(rig.block(i)));
  CHECK(rig.pools.take(kOther, 8) == nullptr);
  CHECK(rig.pools.take(kPool, 65) == nullptr);
  CHECK(rig.pools.take(kPool, 9) == rig.block(2));
  CHECK(rig.pools.take(kPool, 9) == rig.block(0));
  CHECK(rig.pools.take(kPool, 9) == nullptr);  // a copy has used the one of 16

  rig.pools.used(rig.block(0));  // again the program's, and used now
  REQUIRE(rig.pools.freed(rig.block(0)));
  CHECK(rig.pools.take(kPool, 9) == nullptr);
  for (const TorchPoolId& id : {kPool, kOther}) {
    rig.pools.end(id);
    rig.pools.release(id);
  }
  CHECK(rig.pools.take(kPool, 1) == nullptr);
  rig.settle();
  CHECK(rig.freed == std::set<void*>{rig.block(0), rig.block(1), rig.block(3)});
  CHECK_FALSE(rig.pools.freed(rig.block(2)));  // an ordinary block by now
}

TEST_CASE("a region whose capture has failed is in nobody's way", "[torch][host_pools]") {
  Rig rig;
  rig.begin(kOther);
  rig.captured = false;  // and nobody ends it
  rig.begin(kPool);
  rig.pools.allocated(rig.block(0), kPool, 1);
  REQUIRE(rig.pools.freed(rig.block(0)));
  rig.pools.end(kPool);
  rig.pools.release(kPool);
  rig.settle();
  CHECK(rig.freed.size() == 1);
  rig.begin(kOther);
  rig.pools.end(kOther);
  CHECK(rig.pools.now() == kNone);
}

TEST_CASE("the memory of a capture that has failed is free at the thread's next capture",
          "[torch][host_pools]") {
  Rig rig;
  const TorchPoolId next = GENERATE(kPool, kOther);
  rig.begin(kPool);
  rig.pools.allocated(rig.block(0), kPool, 1);
  REQUIRE(rig.pools.freed(rig.block(0)));
  rig.captured = false;
  CHECK(rig.pools.now() == kNone);  // and the graph is not asked
  rig.begin(next);
  rig.captured = true;
  rig.pools.end(next);
  rig.pools.release(next);
  CHECK_THROWS_AS(rig.pools.release(kPool), InvalidArgument);
  rig.settle();
  CHECK(rig.freed == std::set<void*>{rig.block(0)});
}

TEST_CASE("another thread's region may have yet to be captured", "[torch][host_pools]") {
  Rig rig;
  rig.captured = false;
  rig.begin(kOther);
  std::thread([&] { rig.begin(kPool); }).join();
  rig.pools.end(kPool);
  rig.pools.end(kOther);
  CHECK(rig.pools.now() == kNone);
}

TEST_CASE("a region takes what it catches, and blocks of none are nobody's",
          "[torch][host_pools]") {
  Rig rig;
  CHECK_FALSE(rig.pools.freed(rig.block(0)));
  rig.begin(kPool);
  rig.caught = false;
  CHECK(rig.pools.now() == kNone);
  CHECK_FALSE(rig.pools.freed(rig.block(0)));
  rig.pools.end(kPool);
  rig.pools.release(kPool);
  rig.pools.allocated(rig.block(1), kPool, 1);  // the pool went while the block was made
  CHECK_FALSE(rig.pools.freed(rig.block(1)));
}

TEST_CASE("a block's pool is known until its memory is free", "[torch][host_pools]") {
  Rig rig;
  const auto pool = [&] { return rig.pools.standingOf(rig.block(0)).pool; };
  const auto kept = [&] { return rig.pools.standingOf(rig.block(0)).kept; };
  CHECK(pool() == kNone);
  rig.begin(kPool);
  rig.pools.allocated(rig.block(0), kPool, 1);
  CHECK((pool() == kPool && !kept()));
  rig.pools.used(rig.block(0));
  REQUIRE(rig.pools.freed(rig.block(0)));
  CHECK((pool() == kPool && kept()));
  rig.pools.end(kPool);
  rig.pools.release(kPool);
  CHECK((pool() == kPool && kept()));  // until the device has come to rest
  rig.settle();
  CHECK((pool() == kNone && !kept()));
}

TEST_CASE("regions and users that are not there are refused", "[torch][host_pools]") {
  Rig rig;
  CHECK_THROWS_AS(rig.pools.end(kPool), InvalidArgument);
  CHECK_THROWS_AS(rig.pools.release(kPool), InvalidArgument);
  rig.begin(kPool);
  CHECK_THROWS_AS(rig.begin(kPool), InvalidArgument);
  rig.pools.end(kPool);
  rig.pools.release(kPool);
  CHECK_THROWS_AS(rig.pools.release(kPool), InvalidArgument);
}

}  // namespace cistern::test
