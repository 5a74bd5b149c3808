// Blocks whose pool sleeps live, and are not in use.
#include <algorithm>

#include "interop/report/model.hpp"
#include "tests/report/report_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;

constexpr std::uint64_t kPage = 2 << 20;

// A block of a page in pool 1 sleeps while another block of a page is served and a request fails.
// Then the second is freed, and the first wakes.
const std::string kSleeping =
    "N \"load\" \"model.py\" 31\nN \"step\" \"train.py\" 7\nS 0 1\nS 0 2\nL 0 \"weights\"\nP 0 7\n"
    "r map 200000 2097152 0 1 1\na 2097152 0 1 200000 1 1 1\n"
    "r unmap 200000 2097152 0 1 1\n"
    "r map 800000 2097152 0 0 1\na 2097152 0 1 800000 2 0 0\n"
    "o 4096 0 1 2 0 0 {\"requested\":4096,\"limit\":2097152,\"allocated\":4194304}\n"
    "f 1 1\nr unmap 800000 2097152 0 0 1\n"
    "r map 200000 2097152 0 1 1\nf 0 1\n";

TEST_CASE("blocks that sleep are not in use") {
  const json model = testing::modelOfText(kSleeping);
  const auto most = [&](const char* what) {
    const auto& values = model["timeline"][what];
    return std::max_element(values.begin(), values.end())->get<std::uint64_t>();
  };
  CHECK(most("asked") == kPage);
  CHECK(most("allocated") == kPage);
  CHECK(most("reserved") == kPage);
  CHECK(model["labels_peak"][0]["peak"] == kPage);
  for (const json& row : model["timeline"]["stacked"]["site"]) {
    for (const json& bytes : row[1]) CHECK(bytes <= kPage);
  }
}

TEST_CASE("a request that fails while a pool sleeps has the holders with memory") {
  const json model = testing::modelOfText(kSleeping);
  const auto failure = std::find_if(model["moments"].begin(), model["moments"].end(),
                                    [](const json& moment) { return moment["kind"] == "failure"; });
  REQUIRE(failure != model["moments"].end());
  REQUIRE((*failure)["holders"].size() == 1);
  CHECK((*failure)["holders"][0][0] == 2);
  CHECK((*failure)["asked"] == kPage);
  CHECK((*failure)["asleep"] == kPage);
  CHECK((*failure)["allocated"] == kPage);
}

TEST_CASE("a window tells which blocks fall asleep and wake") {
  const json model = testing::modelOfText(kSleeping);
  CHECK(model["windows"][0]["sleeps"] == json{{0, 3, 1}, {0, 9, 0}});
}

TEST_CASE("only recordings that tell of all memory tell of sleep") {
  Subject subject = testing::subjectOf(kSleeping);
  const Study sleeping(subject);
  CHECK(sleeping.sleeps.size() == 2);
  subject.placed_by = "cistern";
  CHECK(Study(subject).sleeps.empty());
  subject.placed_by.clear();
  subject.recording.source = recording::Source::kPytorch;  // may not tell of all memory
  CHECK(Study(subject).sleeps.empty());
}

}  // namespace
}  // namespace cistern::report
