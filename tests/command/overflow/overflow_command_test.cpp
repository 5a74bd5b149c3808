// `cistern replay --overflow`, from its arguments to what it prints.
#include <map>
#include <set>
#include <sstream>

#include "allocator/base/bytes.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {
namespace {

constexpr const char* kMade = "stable:11";

Outcome overflow(std::vector<std::string> more) {
  more.insert(more.begin(), {"replay", "--overflow"});
  return runCommand(more);
}

/// Weights of 400 MiB, and three steps of eight results of 50 MiB that are freed in reverse.
TraceText threeSteps() {
  TraceText trace;
  trace.allocate(400 * kMiB);
  std::uint64_t made = 1;
  for (int step = 0; step < 3; ++step, made += 8) {
    for (int i = 0; i < 8; ++i) trace.allocate(50 * kMiB);
    for (std::uint64_t i = 8; i-- > 0;) trace.free(made + i);
  }
  return trace;
}

void requireOverflowRefused(const std::vector<std::string>& args, const std::string& message) {
  const Outcome outcome = overflow(args);
  INFO(outcome.err);
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, ContainsSubstring(message));
}

}  // namespace

TEST_CASE("a program runs on smaller devices than it needs, with figures for each") {
  const TempFile trace("steps.trace", threeSteps().text());
  const std::uint64_t need = 800 * kMiB;
  std::map<int, std::uint64_t> capacities;
  for (const auto& row : overflow({trace.path(), "--json"}).rows()) {
    CAPTURE(row.dump());
    CHECK(row["ok"] == true);
    CHECK(row["need_bytes"] == need);
    CHECK(row["iterations"] == 3);
    CHECK(row["short_iterations"] == 3);
    const auto capacity = row["capacity_bytes"].get<std::uint64_t>();
    capacities[row["share"].get<int>()] = capacity;
    CHECK(row["bound_bytes"] == 3 * 2 * (need - capacity));
    CHECK(row["bound_once_bytes"] == 2 * (need - capacity));  // of the weights alone
    if (row["rule"] != "overflow") continue;
    // The last results of each step, as far as they do not fit: one of them lies there in part.
    CHECK(row["bus_bytes"] == row["bound_bytes"]);
    CHECK(row["moved_bytes"] == 0);
  }
  CHECK(capacities ==
        std::map<int, std::uint64_t>{{97, 776 * kMiB}, {90, 720 * kMiB}, {80, 640 * kMiB}});
}

TEST_CASE("no rule goes below the bound") {
  for (const auto& row :
       overflow({"--generate", "stable:11,streams:11,sampled:10", "--json"}).rows()) {
    CAPTURE(row.dump());
    CHECK(row["ok"] == true);
    CHECK(row["bound_once_bytes"] <= row["bound_bytes"]);
    CHECK(row["bound_bytes"] <= row["bus_bytes"]);
    CHECK(row["bound_worst_bytes"] <= row["worst_bytes"]);
    CHECK(row["worst_bytes"] <= row["bus_bytes"]);
    CHECK(row["short_lived_bytes"] <= row["bus_bytes"]);
  }
}

TEST_CASE("the figures come out the same each time") {
  const Outcome once = overflow({"--generate", kMade});
  CHECK(once.status == 0);
  CHECK(overflow({"--generate", kMade}).out == once.out);
}

TEST_CASE("the table has the rules and the bounds for each size") {
  const Outcome outcome = overflow({"--generate", kMade});
  CHECK(outcome.err.empty());
  for (const char* const text :
       {"97 %", "90 %", "80 %", "overflow", "bound, once", "too large for it"})
    CHECK_THAT(outcome.out, ContainsSubstring(text));
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK_FALSE(line.ends_with(' '));
  }
}

TEST_CASE("JSON has the documented keys") {
  const auto row = overflow({"--generate", kMade, "--json"}).rows().at(0);
  std::set<std::string> keys;
  for (const auto& item : row.items()) keys.insert(item.key());
  CHECK(keys == documentedKeys("overflow.md"));
}

TEST_CASE("the options of the allocator are those of --conf") {
  const auto rows = overflow({"--generate", kMade, "--json", "--page-size", "20MiB"}).rows();
  CHECK(rows.at(0)["conf"] == "page_size:20 MiB");
}

TEST_CASE("options that --overflow has no figures for are refused by name") {
  for (const std::vector<std::string>& other :
       std::vector<std::vector<std::string>>{{"--policy", "direct"},
                                             {"--capacity", "1GiB"},
                                             {"--fit"},
                                             {"--check"},
                                             {"--csv"},
                                             {"--plot", "a.svg"},
                                             {"--repeat", "2"},
                                             {"--threads", "2"}}) {
    std::vector<std::string> args = {"--generate", kMade};
    args.insert(args.end(), other.begin(), other.end());
    requireOverflowRefused(args, other[0] + " does not go with --overflow");
  }
  requireOverflowRefused({"--generate", kMade, "--device", "cuda"},
                         "--overflow needs --device sim");
  requireOverflowRefused({}, "replay needs a trace");
}

TEST_CASE("a program that is too small to be held to a share of its need is refused") {
  const TempFile trace("small.trace", TraceText().allocate(1 * kMiB).free(0).text());
  requireOverflowRefused({trace.path()}, "needs 1.00 MiB at its peak, and 97 %");
  const TempFile nothing("nothing.trace", TraceText().allocate(0).text());
  requireOverflowRefused({nothing.path()}, "needs 0 B at its peak");
}

TEST_CASE("each GPU of a snapshot is a program of its own") {
  requireOverflowRefused({sampleSnapshot()}, "[cuda:0] needs");
  requireOverflowRefused({sampleSnapshot(), "--gpu", "1"}, "[cuda:1] needs");
}

TEST_CASE("memory in segments has no host pages") {
  const Outcome outcome = overflow({"--generate", kMade, "--conf", "backing:segments"});
  CHECK(outcome.status == 1);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, ContainsSubstring("--overflow, rule overflow: "));
}

TEST_CASE("a trace that lacks the uses by other streams has a bound and no figure") {
  const TempFile trace("lacks.trace", "# {\"name\": \"lacks\", \"stream_uses\": \"missing\"}\n" +
                                          threeSteps().text());
  const Outcome outcome = overflow({trace.path(), "--json"});
  CHECK(outcome.status == 1);
  for (const auto& row : outcome.rows()) {
    CHECK(row["ok"] == false);
    CHECK_THAT(row["failure"].get<std::string>(), ContainsSubstring("stream_uses"));
    CHECK(row["bus_bytes"].is_null());
    CHECK(row["bound_bytes"] > 0);
  }
}

}  // namespace cistern::test
