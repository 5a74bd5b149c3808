#include "interop/report/columns.hpp"

#include <numeric>

#include "tests/report/report_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::report {
namespace {

TEST_CASE("columns cover the time evenly, and no peak is lost") {
  // 100 at 0 µs, 300 at 10 µs for no time at all, 100 until 100 µs.
  const Subject subject = testing::subjectOf("a 100 0 0\na 200 0 10\nf 1 0\nf 0 90\n");
  const Columns columns(subject.recording, 4);
  REQUIRE(columns.count() == 4);
  CHECK(columns.edges() == std::vector<std::uint64_t>{0, 25, 50, 75, 100});
  CHECK(columns.of(24) == 0);
  CHECK(columns.of(25) == 1);
  CHECK(columns.of(100) == 3);
  const std::vector<Life> lives = livesOf(subject.recording);
  const ColumnPeaks peaks =
      peaksOf(subject.recording, InUse(subject.recording, lives, {}), columns);
  CHECK(peaks.asked == std::vector<std::uint64_t>{300, 100, 100, 100});
  CHECK(peaks.done == std::vector<std::uint32_t>{2, 3, 3, 3});
}

TEST_CASE("a recording at one moment has one column") {
  const Subject subject = testing::subjectOf("a 100 0 0\na 200 0 0\n");
  const Columns columns(subject.recording, 2000);
  CHECK(columns.count() == 1);
  const std::vector<Life> lives = livesOf(subject.recording);
  const ColumnPeaks peaks =
      peaksOf(subject.recording, InUse(subject.recording, lives, {}), columns);
  CHECK(peaks.asked == std::vector<std::uint64_t>{300});
}

TEST_CASE("a column's most counts the value that it begins with") {
  const Subject subject = testing::subjectOf("a 1 0 0\na 1 0 100\na 1 0 100\na 1 0 100\na 1 0 0\n");
  const Columns columns(subject.recording, 3);
  ColumnMost most(columns);
  most.add(0, 5);
  most.add(250, 2);
  CHECK(most.finish() == std::vector<std::uint64_t>{5, 5, 5});
}

TEST_CASE("a value lasts to the end") {
  const Subject subject = testing::subjectOf("a 1 0 0\na 1 0 100\na 1 0 100\na 1 0 100\n");
  const Columns columns(subject.recording, 3);
  ColumnMost most(columns);
  most.add(150, 7);
  CHECK(most.finish() == std::vector<std::uint64_t>{0, 7, 7});
}

}  // namespace
}  // namespace cistern::report
