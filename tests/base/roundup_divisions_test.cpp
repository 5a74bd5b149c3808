#include "allocator/base/bytes.hpp"
#include "cistern/options.hpp"
#include "tests/support/catch.hpp"

namespace cistern {
namespace {

RoundupDivisions divisions(std::string_view text) {
  const auto read = RoundupDivisions::read(text);
  INFO(text);
  REQUIRE(read.has_value());
  return *read;
}

TEST_CASE("one number holds for every size") {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{1}, kMiB, 100 * kGiB}) {
    CHECK(divisions("8").divisionsFor(bytes) == 8);
    CHECK(divisions("off").divisionsFor(bytes) == 0);
  }
  CHECK(divisions("off") == RoundupDivisions{});
}

TEST_CASE("a key holds from its size up to twice that size") {
  const RoundupDivisions list = divisions("[256:1,512:2,1024:4,>:8]");
  CHECK(list.divisionsFor(512) == 1);  // the first key holds for all below
  CHECK(list.divisionsFor(512 * kMiB - 1) == 1);
  CHECK(list.divisionsFor(512 * kMiB) == 2);
  CHECK(list.divisionsFor(kGiB - 1) == 2);
  CHECK(list.divisionsFor(kGiB) == 4);
  CHECK(list.divisionsFor(2 * kGiB) == 8);
  CHECK(list.divisionsFor(std::uint64_t{1} << 63) == 8);
}

TEST_CASE("sizes between two keys, and above the last without '>', are not rounded") {
  const RoundupDivisions list = divisions("[1:4,8:2]");
  CHECK(list.divisionsFor(kMiB) == 4);
  CHECK(list.divisionsFor(2 * kMiB) == 0);
  CHECK(list.divisionsFor(8 * kMiB) == 2);
  CHECK(list.divisionsFor(16 * kMiB) == 0);
}

TEST_CASE("the two largest keys both name the last interval") {
  CHECK(divisions("[32768:4]") == divisions("[65536:4]"));
  CHECK(divisions("[32768:4]").divisionsFor(kTiB) == 4);
  CHECK(divisions("[>:16]") == divisions("16"));
}

TEST_CASE("a list may have spaces") {
  CHECK(divisions("[ 256 : 1 , > : 4 ]") == divisions("[256:1,>:4]"));
}

TEST_CASE("a malformed list is not read") {
  const auto* text = GENERATE("", "[", "]", "[]", "[256]", "[256:]", "[:1]", "[256:1,]", "[256:3]",
                              "[256:128]", "[3:1]", "[0:1]", "[131072:1]", "[256:1,256:2]",
                              "[512:1,256:2]", "[>:2,256:1]", "[256:1", "0", "3", "-2", "4x");
  INFO(text);
  CHECK_FALSE(RoundupDivisions::read(text).has_value());
}

TEST_CASE("divisions print as the shortest text that reads back") {
  for (const auto* text : {"off", "1", "64", "[256:1,512:2,>:4]", "[1:4,2:0,4:0,8:2,>:0]"}) {
    CHECK(divisions(text).print() == text);
  }
  CHECK(divisions("[256:1,512:2,1024:4,>:4]").print() == "[256:1,512:2,>:4]");
  CHECK(divisions(divisions("[65536:8]").print()) == divisions("[65536:8]"));
}

}  // namespace
}  // namespace cistern
