// Which blocks have memory of the device, as a history of PyTorch's needs it.
#include "interop/torch/block_backing.hpp"

#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

using cistern_torch::BlockBacking;
using Addresses = BlockBacking::Addresses;
using Parts = std::vector<BlockBacking::Range>;

}  // namespace

TEST_CASE("a block is lost with its first page and back with its last", "[torch][block_backing]") {
  BlockBacking backing;
  CHECK(backing.add(150, 200));
  CHECK(backing.add(400, 50));
  CHECK(backing.takeAway({100, 200}) == Addresses{150});
  CHECK(backing.takeAway({200, 300}).empty());
  CHECK(backing.bringBack({100, 200}).empty());
  CHECK(backing.partsOf({150, 350}) == Parts{{150, 200}, {300, 350}});
  CHECK(backing.bringBack({200, 300}) == Addresses{150});
  CHECK(backing.bringBack({200, 300}).empty());
  CHECK(backing.takeAway({0, 1000}) == Addresses{150, 400});
}

TEST_CASE("a block that is freed without its memory does not come back", "[torch][block_backing]") {
  BlockBacking backing;
  CHECK(backing.add(100, 100));
  CHECK(backing.takeAway({0, 150}) == Addresses{100});
  CHECK_FALSE(backing.remove(100));
  CHECK(backing.bringBack({0, 150}).empty());
  CHECK(backing.add(100, 100));
  CHECK(backing.remove(100));
  CHECK(backing.remove(700));  // from before anybody recorded
}

TEST_CASE("a block in memory of the host is new without memory", "[torch][block_backing]") {
  BlockBacking backing;
  backing.assumeGone({0, 100});
  CHECK(backing.takeAway({200, 300}).empty());
  CHECK_FALSE(backing.add(50, 100));
  CHECK_FALSE(backing.add(250, 100));
  CHECK(backing.add(100, 100));
  CHECK(backing.takeAway({100, 200}) == Addresses{100});  // three ranges are one
  CHECK(backing.partsOf({0, 350}) == Parts{{300, 350}});
  CHECK(backing.bringBack({120, 140}).empty());
  CHECK(backing.partsOf({0, 350}) == Parts{{120, 140}, {300, 350}});
  CHECK(backing.bringBack({0, 300}) == Addresses{50, 100, 250});
  backing.clear();
  CHECK(backing.partsOf({0, 10}) == Parts{{0, 10}});
}

}  // namespace cistern::test
