#include "interop/command/overflow/lifetimes.hpp"

#include "tests/command/overflow/scripts.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

const auto kProgram =
    TraceText().allocate(100).allocate(0).allocate(30).free(0).allocate(50).free(1).free(3);

}  // namespace

TEST_CASE("a block lives from its allocation to its free, or to the end") {
  const auto lives = command::lifetimesOf(scriptOf(kProgram));
  REQUIRE(lives.size() == 3);  // that of 0 bytes is none
  CHECK(lives[0].bytes == 100);
  CHECK(lives[0].born == 0);
  CHECK(lives[0].ended == 3);
  CHECK(lives[1].bytes == 30);
  CHECK(lives[1].ended == 7);
  CHECK(lives[2].born == 4);
  CHECK(lives[2].ended == 6);
}

TEST_CASE("the need of a program is the most that lives at once") {
  const auto living = command::livingBytes(scriptOf(kProgram));
  CHECK(living == std::vector<std::uint64_t>{100, 100, 130, 30, 80, 80, 30});
  CHECK(command::needOf(living) == 130);
  CHECK(command::needOf({}) == 0);
}

TEST_CASE("a freed block that another stream still uses keeps its memory") {
  const auto script = scriptOf(TraceText().allocate(100).free(0).allocate(10).endUses(0));
  CHECK(command::livingBytes(script) == std::vector<std::uint64_t>{100, 100, 110, 10});
  const auto lives = command::lifetimesOf(script);
  CHECK(lives.at(0).ended == 3);
  CHECK(lives.at(1).ended == 4);
}

}  // namespace cistern::test
