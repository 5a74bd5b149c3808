#include "interop/report/fits_without.hpp"

#include "tests/report/report_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::report {
namespace {

constexpr std::uint64_t kMega = 1 << 20;

/// Whether a request fits without the blocks of stack 1. The events' addresses are in hex.
std::optional<bool> fits(const std::string& events, std::uint64_t bytes,
                         std::optional<std::uint64_t> available) {
  const Subject subject = testing::subjectOf(
      "# {\"recording\": 1}\nN \"keep\" \"train.py\" 41\nN \"other\" \"train.py\" 50\n"
      "S 0 1\nS 0 2\n" +
      events);
  const Study study(subject);
  const Living living = livingAfter(study.lives, study.events());
  return fitsWithout(Request{bytes}, reservedAfter(study.recorded(), study.events()), study.lives,
                     living, Holder{1, 0}, available);
}

// A segment of 8 MiB: 2 MiB of stack 1, 2 of stack 2, 2 of stack 1, and 2 free.
const std::string kSegment =
    "r alloc 1000000 8388608 0 0 1\n"
    "a 2097152 0 1 1000000 1 0 0\na 2097152 0 1 1200000 2 0 0\na 2097152 0 1 1400000 1 0 0\n";

TEST_CASE("a request fits where the blocks and free memory beside them are one run") {
  CHECK(fits(kSegment, 4 * kMega, 0) == true);
  CHECK(fits(kSegment, 5 * kMega, 0) == false);  // 6 MiB would be free, in two pieces
}

TEST_CASE("a segment that is wholly free without the blocks goes back to the device") {
  const std::string small =
      kSegment + "r alloc 4000000 4194304 0 0 1\na 4194304 0 1 4000000 1 0 0\n";
  CHECK(fits(small, 6 * kMega, 2 * kMega) == true);
  CHECK(fits(small, 7 * kMega, 2 * kMega) == false);
  CHECK_FALSE(fits(small, 7 * kMega, {}).has_value());
}

TEST_CASE("pages go back wherever they lie") {
  std::string pages = kSegment;
  pages.replace(pages.find("alloc"), 5, "map");
  CHECK(fits(pages, 5 * kMega, 0) == true);
  CHECK(fits(pages, 7 * kMega, 0) == false);
}

}  // namespace
}  // namespace cistern::report
