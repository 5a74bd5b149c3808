// What the arguments of `cistern replay` ask for.
#include "interop/command/replay/arguments.hpp"

#include "interop/command/replay/progress_bar.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {

using command::Arguments;
using command::settingsFrom;

TEST_CASE("without arguments about pages, the options are those of --conf") {
  Arguments given;
  given.conf = {"page_size:4MiB", "recycle:eager,limit:1GiB"};
  const Options options = settingsFrom(given).options;
  CHECK(options.page_size == 4 * kMiB);
  CHECK(options.recycle == Recycle::kEager);
  CHECK(options.limit == kGiB);
}

TEST_CASE("--page-size and --no-recycle win over --conf, and leave its other options alone") {
  Arguments given;
  given.conf = {"page_size:4MiB,recycle:eager,limit:1GiB"};
  given.page_size = "20MiB";
  given.no_recycle = true;
  const Options options = settingsFrom(given).options;
  CHECK(options.page_size == 20 * kMiB);
  CHECK(options.recycle == Recycle::kOff);
  CHECK(options.limit == kGiB);

  given.page_size = "auto";
  CHECK(settingsFrom(given).options.page_size == 0);
}

TEST_CASE("the time that is left is in one unit, rounded up") {
  CHECK(command::timeLeft(0.2) == "1 s");
  CHECK(command::timeLeft(59.2) == "60 s");
  CHECK(command::timeLeft(91) == "2 min");
  CHECK(command::timeLeft(5'401) == "2 h");
}

TEST_CASE("a lag is in microseconds, or has a unit") {
  for (const auto& [text, us] :
       std::vector<std::pair<std::string, std::uint64_t>>{{"", 0},
                                                          {"0", 0},
                                                          {"10000", 10'000},
                                                          {"10ms", 10'000},
                                                          {"10 ms", 10'000},
                                                          {"2.5ms", 2'500},
                                                          {"7us", 7},
                                                          {"7µs", 7},
                                                          {"3600s", 3'600'000'000}}) {
    Arguments given;
    given.gpu_lag = text;
    INFO(text);
    CHECK(settingsFrom(given).gpu_lag_us == us);
  }
}

}  // namespace cistern::test
