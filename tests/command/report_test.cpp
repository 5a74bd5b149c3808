// `cistern report`: what it refuses, what is left of the file, and what its replays add. The
// analyses have tests of their own, in tests/report.
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/report/report_page.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skipped.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {
namespace {

const std::string kReported =
    TraceText().allocate(40 * kMiB).allocate(20 * kMiB).free(0).allocate(30 * kMiB).free(1).text();

/// Blocks that have their addresses, and a moment that the program names.
const std::string kWithPlaces =
    "# {\"name\": \"placed\", \"recording\": 1}\n"
    "a 1024 0 10 1000 0 0 0\nt 10 \"step 1\"\na 1024 0 10 2000 0 0 0\nf 0 1000000\n";

std::string textIn(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A recording, and the name of a report beside it that is not there.
struct Reported {
  explicit Reported(const std::string& text = kReported) : file("two.trace", text) {}

  std::string path(const std::string& name = "two.html") const {
    return (std::filesystem::path(file.path()).parent_path() / name).string();
  }
  Outcome report(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"report", file.path(), "-o", path()});
    return runCommand(more);
  }
  /// The model of the one recording.
  nlohmann::json model(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> args = {"report", file.path(), "-o", "-", "--format", "json"};
    args.insert(args.end(), more.begin(), more.end());
    const Outcome outcome = runCommand(args);
    INFO(outcome.err);
    REQUIRE(outcome.status == 0);
    return nlohmann::json::parse(outcome.out)["recordings"][0];
  }

  TempFile file;
};

void requireReportRefused(const std::vector<std::string>& more, const std::string& message) {
  std::vector<std::string> args = {"report"};
  args.insert(args.end(), more.begin(), more.end());
  const Outcome outcome = runCommand(args);
  INFO(outcome.err);
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, ContainsSubstring(message));
}

}  // namespace

TEST_CASE("a report needs one file or two, and a name to write to") {
  const Reported here;
  const std::string file = here.file.path();
  requireReportRefused({"-o", here.path()}, "report needs a file, or two to compare");
  requireReportRefused({file}, "report needs -o FILE");
  requireReportRefused({file, file, file, "-o", here.path()}, "and 3 are given");
  requireReportRefused({"-", "-", "-o", here.path()}, "can be read only once");
  CHECK_FALSE(std::filesystem::exists(here.path()));
}

TEST_CASE("a report is never written over its file") {
  const Reported here;
  requireReportRefused({here.file.path(), "-o", here.file.path()}, "two.trace");
  std::filesystem::create_symlink(here.file.path(), here.path("link"));
  requireReportRefused({here.file.path(), "-o", here.path("link"), "--format", "json"}, "link");
  CHECK(textIn(here.file.path()) == kReported);
}

TEST_CASE("a report that cannot be written is refused before any work") {
  const Reported here;
  requireReportRefused({here.file.path(), "-o", here.path("none/two.html"), "--format", "json"},
                       "none/two.html: cannot be written: No such file or directory");
}

TEST_CASE("a bad file leaves the old report") {
  const Reported here("a 100 0 1\nf 7 1\n");
  std::ofstream(here.path()) << "old";
  const Outcome outcome = here.report({"--format", "json"});
  CHECK(outcome.status == 2);
  CHECK_THAT(outcome.err, ContainsSubstring("two.trace:2:"));
  CHECK(textIn(here.path()) == "old");
}

TEST_CASE("unknown formats, policies and moments are named") {
  const Reported here;
  const std::string file = here.file.path();
  requireReportRefused({file, "-o", here.path(), "--format", "htm"},
                       "--format htm: must be one of");
  requireReportRefused({file, "-o", here.path(), "--policy", "torch"}, "unknown policy 'torch'");
  requireReportRefused({file, "-o", "-", "--format", "json", "--at", "noon"},
                       "--at noon: there is no such moment; " + file + " has ");
  requireReportRefused({file, "-o", "-", "--format", "json", "--at", "1h"},
                       "--at 1h: there is no such moment");
  requireReportRefused({file, "-o", "-", "--format", "json", "--at", "1000"},
                       "--at 1000: there is no such moment");
}

TEST_CASE("blocks without addresses are placed by policy cistern") {
  const nlohmann::json model = Reported().model();
  CHECK(model["placed_by"] == "cistern");
  CHECK(model["heat"].is_object());
  CHECK_FALSE(model["calls"].empty());
  const nlohmann::json& line = model["timeline"];
  CHECK(line["reserved"].size() == line["asked"].size());
  for (std::size_t i = 0; i < line["asked"].size(); ++i)
    CHECK(line["reserved"][i] >= line["asked"][i]);
  REQUIRE(line["policies"].size() == 2);
  CHECK(line["policies"][0]["name"] == "torch-rules");
  CHECK(line["policies"][1]["name"] == "torch-expandable");
}

TEST_CASE("blocks that have addresses stay where they were") {
  const nlohmann::json model = Reported(kWithPlaces).model();
  CHECK(model["placed_by"].is_null());
  CHECK(model["heat"]["segments"][0][0] == 0x1000);
}

TEST_CASE("other policies are those that are named, and are held to a capacity") {
  const nlohmann::json model =
      Reported().model({"--policy", "driver-pool,cistern", "--capacity", "48MiB"});
  const nlohmann::json& policies = model["timeline"]["policies"];
  REQUIRE(policies.size() == 2);
  CHECK(policies[0]["name"] == "driver-pool");
  CHECK(policies[0]["failed_at"].is_null());  // it takes no capacity
  CHECK(policies[1]["name"] == "cistern");
  CHECK(policies[1]["failed_at"] == 20);
  CHECK_THAT(policies[1]["failure"].get<std::string>(), ContainsSubstring("event 2 of 5"));
  CHECK(model["timeline"]["limit"] == 48 * kMiB);
}

TEST_CASE("the curves of policies begin where a recording begins, however late") {
  const nlohmann::json model = Reported(
                                   "# {\"name\": \"late\", \"recording\": 1}\n"
                                   "a 1024 0 5000 1000 0 0 0\na 1024 0 1000 2000 0 0 0\nf 0 1000\n")
                                   .model();
  REQUIRE(model["timeline"]["policies"].size() == 2);
  for (const nlohmann::json& policy : model["timeline"]["policies"]) {
    INFO(policy["name"]);
    for (const nlohmann::json& reserved : policy["reserved"]) CHECK(reserved >= 1024);
  }
}

TEST_CASE("the peaks of policies are those that a replay finds") {
  const std::string trace = recordedTrace("gnn_sampled");
  const Outcome outcome = runCommand({"report", trace, "-o", "-", "--format", "json"});
  const nlohmann::json line = nlohmann::json::parse(outcome.out)["recordings"][0]["timeline"];
  const Outcome replayed = runCommand({"replay", trace, "--device", "sim", "--policy",
                                       "torch-rules,torch-expandable,cistern", "--json"});
  const std::vector<nlohmann::json> rows = replayed.rows();
  REQUIRE(rows.size() == 3);
  const auto most = [](const nlohmann::json& curve) {
    return *std::max_element(curve.begin(), curve.end());
  };
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(line["policies"][i]["peak"] == rows[i]["peak_reserved_bytes"]);
    CHECK(most(line["policies"][i]["reserved"]) == rows[i]["peak_reserved_bytes"]);
  }
  CHECK(most(line["reserved"]) == rows[2]["peak_reserved_bytes"]);
}

TEST_CASE("moments are named by time, by the program's name, and by number") {
  const nlohmann::json model =
      Reported(kWithPlaces).model({"--at", "0.5s", "--at", "step 1", "--at", "1"});
  std::vector<std::string> titles;
  std::vector<int> events;
  for (const nlohmann::json& moment : model["moments"]) {
    if (moment["kind"] != "mark") continue;
    titles.push_back(moment["title"]);
    events.push_back(moment["event"]);
  }
  CHECK(titles == std::vector<std::string>{"step 1", "Event 1", "0.5s"});
  CHECK(events == std::vector<int>{1, 1, 3});
}

TEST_CASE("a moment that the maker names has the time of its name") {
  const auto atOf = [](const std::string& moment) {
    const nlohmann::json model = Reported(kWithPlaces).model({"--at", moment});
    for (const nlohmann::json& one : model["moments"])
      if (one["kind"] == "mark") return one["at_us"].get<std::uint64_t>();
    return std::uint64_t{0};
  };
  CHECK(atOf("step 1") == 20);
  CHECK(atOf("0.5s") == 500'000);
}

TEST_CASE("two files are compared") {
  const Reported before, after(TraceText().allocate(70 * kMiB).text());
  const Outcome outcome =
      runCommand({"report", before.file.path(), after.file.path(), "-o", "-", "--format", "json"});
  REQUIRE(outcome.status == 0);
  const nlohmann::json model = nlohmann::json::parse(outcome.out);
  CHECK(model["recordings"].size() == 2);
  CHECK(model["comparison"]["peak"] == nlohmann::json{60 * kMiB, 70 * kMiB});
}

TEST_CASE("a page is written whole, and says how it was made") {
  if (!report::missingPackages().empty()) {
    const Outcome outcome = Reported().report();
    CHECK(outcome.status == 1);
    CHECK_THAT(outcome.err, ContainsSubstring("install " + report::missingPackages()));
    return skipped("this build makes no pages");
  }
  const Reported here;
  const Outcome outcome = here.report();
  INFO(outcome.err);
  CHECK(outcome.status == 0);
  CHECK(outcome.out.empty());
  const std::string page = textIn(here.path());
  CHECK(page.rfind("<!doctype html>", 0) == 0);
  CHECK(page.find("</html>") != page.npos);
}

}  // namespace cistern::test
