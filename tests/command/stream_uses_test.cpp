// Blocks that other streams use when the program frees them: they are free for reuse when a trace
// says that these uses have ended.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "allocator/base/bytes.hpp"
#include "interop/command/replay/script.hpp"
#include "interop/recording/read_recording.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {
namespace {

constexpr const char* kAll = "cistern,torch-rules,torch-expandable,driver-pool,direct";
const std::string kMissing = "# {\"name\": \"lacks\", \"stream_uses\": \"missing\"}\n";

// At most one block of 40 MiB lives, but the first is used until the second is gone.
const std::string kUsed = TraceText()
                              .allocate(40 * kMiB)
                              .free(0)
                              .allocate(40 * kMiB)
                              .free(1)
                              .endUses(0)
                              .allocate(40 * kMiB)
                              .text();
const std::string kTwoStreams =
    TraceText().allocate(40 * kMiB).free(0).allocate(40 * kMiB, 1).text();

Outcome replayText(const std::string& text, std::vector<std::string> more) {
  const TempFile trace("t.trace", text);
  more.insert(more.begin(), {"replay", trace.path(), "--device", "sim"});
  return runCommand(more);
}

}  // namespace

TEST_CASE("a block is reserved until other streams' uses of it have ended") {
  const std::map<std::string, std::uint64_t> reserved{{"cistern", 80 * kMiB},
                                                      {"torch-rules", 80 * kMiB},
                                                      {"torch-expandable", 80 * kMiB},
                                                      {"driver-pool", 96 * kMiB},
                                                      {"direct", 40 * kMiB}};
  for (const auto& row : replayText(kUsed, {"--json", "--policy", kAll}).rows()) {
    INFO(row.dump());
    CHECK(row["ok"] == true);
    CHECK(row["events"] == 6);
    CHECK(row["peak_requested_bytes"] == 40 * kMiB);
    CHECK(row["peak_reserved_bytes"] == reserved.at(row["policy"]));
  }
}

TEST_CASE("uses that end count in every way to replay") {
  const std::vector<std::vector<std::string>> ways{
      {"--check", "--gpu-lag-us", "500"}, {"--threads", "3"}, {"--repeat", "3"}};
  for (std::vector<std::string> way : ways) {
    INFO(way.front());
    way.insert(way.end(), {"--json", "--policy", "cistern,torch-expandable"});
    for (const auto& row : replayText(kUsed, way).rows()) {
      CHECK(row["ok"] == true);
      CHECK(row["peak_reserved_bytes"] == 80 * kMiB);
    }
  }
}

TEST_CASE("out of memory, a policy waits for the uses of freed blocks") {
  for (const auto& row : replayText(kUsed, {"--json", "--policy", kAll, "--fit"}).rows()) {
    INFO(row.dump());
    if (row["policy"] != "driver-pool") CHECK(row["fit"] == 1.0);
  }
  const std::string live = TraceText().allocate(40 * kMiB).allocate(40 * kMiB).text();
  CHECK(replayText(kUsed, {"--capacity", "40MiB"}).status == 0);
  CHECK(replayText(kUsed + live, {"--capacity", "60MiB"}).status == 1);
}

TEST_CASE("a block that is used to the end of a trace is freed after it") {
  const std::string text = TraceText().allocate(40 * kMiB).free(0).endUses(0).text();
  for (const auto& row : replayText(text, {"--json", "--repeat", "2", "--policy", kAll}).rows())
    CHECK(row["ok"] == true);
}

TEST_CASE("a slot serves another block when the uses of its own have ended") {
  const command::Script script =
      command::makeScript(recording::parseFile(kUsed, "t", trace::Detail::kCalls).recordings.at(0));
  using Kind = command::StepKind;
  std::vector<Kind> kinds;
  for (const command::Step& step : script.steps) kinds.push_back(step.kind);
  CHECK(kinds == std::vector<Kind>{Kind::kAllocate, Kind::kFreeWhileUsed, Kind::kAllocate,
                                   Kind::kFree, Kind::kUsesEnd, Kind::kAllocate});
  CHECK(script.slots == 2);
  CHECK(script.steps[2].slot != script.steps[0].slot);
}

TEST_CASE("a policy that needs uses which a trace lacks has no figure") {
  const Outcome json = replayText(kMissing + kTwoStreams, {"--json", "--policy", kAll});
  CHECK(json.status == 1);
  const auto rows = json.rows();
  REQUIRE(rows.size() == 5);
  for (const auto& row : rows) {
    INFO(row.dump());
    const bool known = row["policy"] == "direct";
    CHECK(row["ok"] == known);
    CHECK(row["peak_requested_bytes"] == 40 * kMiB);
    for (const char* key : {"peak_reserved_bytes", "ns_per_event", "device_calls", "pages"})
      CHECK(row[key].is_null() == !known);
    CHECK((row["failure"].get<std::string>().rfind("no figure: ", 0) == 0) == !known);
  }
}

TEST_CASE("the table and the CSV have no figure either") {
  const Outcome table = replayText(kMissing + kTwoStreams, {"--policy", "torch-expandable,direct"});
  CHECK(table.status == 1);
  CHECK_THAT(table.out, ContainsSubstring("\n  torch-expandable           –        –"));
  CHECK_THAT(table.out, ContainsSubstring("✗ no figure: under this policy"));
  CHECK_THAT(table.out, ContainsSubstring("\n  direct             40.00 MiB"));
  CHECK_FALSE(table.out.find("In short") != std::string::npos);

  const Outcome csv =
      replayText(kMissing + kTwoStreams, {"--csv", "--policy", "torch-expandable,direct"});
  std::istringstream lines(csv.out);
  std::vector<std::string> rows;
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  REQUIRE(rows.size() == 3);
  CHECK_THAT(rows[1], ContainsSubstring("lacks,torch-expandable,sim,3,false,41943040,,,"));
  for (const std::string& row : rows)
    CHECK(std::count(row.begin(), row.end(), ',') ==
          std::count(rows[0].begin(), rows[0].end(), ','));
}

TEST_CASE("a picture names the policies that have no figure") {
  const TempFile trace("t.trace", kMissing + kTwoStreams);
  const TempFile picture("p.svg", "");
  const Outcome outcome = runCommand({"replay", trace.path(), "--device", "sim", "--plot",
                                      picture.path(), "--policy", "torch-expandable,direct"});
  std::ifstream file(picture.path());
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CHECK_THAT(text, ContainsSubstring("There is no figure for PyTorch, expandable (model)."));
}

TEST_CASE("the table says that a trace of several streams says nothing of uses") {
  const std::string said = "streams: a trace of several streams without stream_uses";
  CHECK_THAT(replayText(kTwoStreams, {}).out, ContainsSubstring(said));
  CHECK_THAT(
      replayText("# {\"name\": \"x\", \"stream_uses\": \"recorded\"}\n" + kTwoStreams, {}).out,
      !ContainsSubstring(said));
  CHECK_THAT(replayText(kUsed, {}).out, !ContainsSubstring(said));
  CHECK_THAT(runCommand({"replay", "--generate", "streams:1", "--device", "sim"}).out,
             !ContainsSubstring(said));
}

}  // namespace cistern::test
