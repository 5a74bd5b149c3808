
#include "interop/report/living.hpp"
#include "tests/report/report_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::report {
namespace {

const std::string kThreeBlocks =
    "a 100 0 1 1000 0 0 0\na 600 7 1 2000 0 0 0\na 50 0 1 3000 0 0 0\n"
    "f 1 1\nf 0 1\ne 1 1\n";

TEST_CASE("a life has its block's facts, and ends at its free") {
  const Subject subject = testing::subjectOf(kThreeBlocks);
  const std::vector<Life> lives = livesOf(subject.recording);
  REQUIRE(lives.size() == 3);
  CHECK(lives[1].bytes == 600);
  CHECK(lives[1].address == 0x2000);
  CHECK(lives[1].stream == 1);
  CHECK(lives[0].born == 0);
  CHECK(lives[0].freed == 4);
  CHECK(lives[0].ended == 4);
  CHECK(lives[2].freed == 6);  // never: the number of events
}

TEST_CASE("a freed block is pending until its last use ends") {
  const Subject subject = testing::subjectOf(kThreeBlocks);
  const std::vector<Life> lives = livesOf(subject.recording);
  const Living after_frees = livingAfter(lives, 5);
  CHECK(after_frees.held == std::vector<std::uint32_t>{2});
  CHECK(after_frees.pending == std::vector<std::uint32_t>{1});
  CHECK(livingAfter(lives, 6).pending.empty());
  CHECK(askedBytes(lives, after_frees) == 50);
  CHECK(takenBytes(lives, after_frees) == 512 + 1024);
}

TEST_CASE("a state comes before the event that changes it") {
  const Subject subject = testing::subjectOf(kThreeBlocks);
  const std::vector<Life> lives = livesOf(subject.recording);
  CHECK(livingAfter(lives, 0).held.empty());
  CHECK(livingAfter(lives, 1).held.size() == 1);
  CHECK(livingAfter(lives, 3).held.size() == 3);
  CHECK(livingAfter(lives, 4).held.size() == 2);
}

}  // namespace
}  // namespace cistern::report
