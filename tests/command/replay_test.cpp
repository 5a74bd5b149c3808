// `cistern replay` on traces small enough to know what must come out.
#include <algorithm>
#include <set>
#include <sstream>

#include "allocator/base/bytes.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/skipped.hpp"
#include "tests/support/slow_build.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {
namespace {

Outcome replaySim(const std::string& path, std::vector<std::string> more) {
  more.insert(more.begin(), {"replay", path, "--device", "sim"});
  return runCommand(more);
}

// Two blocks of 40 MiB, of which the first ends before a third begins: 80 MiB at most.
const std::string kThreeBlocks =
    TraceText().allocate(40 * kMiB).allocate(40 * kMiB).free(0).allocate(40 * kMiB).free(1).text();

// 40 MiB come and go, then 30 and 12 MiB are asked for: the freed 40 serve the 30, and what is left
// of them is too small for the 12.
const std::string kLeftover =
    TraceText().allocate(40 * kMiB).free(0).allocate(30 * kMiB).allocate(12 * kMiB).text();

}  // namespace

TEST_CASE("a row of JSON has exactly the documented keys, and the right figures") {
  const bool pages = GENERATE(true, false);
  const TempFile trace("three.trace", kThreeBlocks);
  const Outcome outcome =
      replaySim(trace.path(), {"--json", "--conf", pages ? "backing:pages" : "backing:segments"});
  CHECK(outcome.status == 0);
  CHECK(outcome.err.empty());
  const auto rows = outcome.rows();
  REQUIRE(rows.size() == 1);
  const nlohmann::json& row = rows[0];
  std::set<std::string> keys;
  for (const auto& item : row.items()) keys.insert(item.key());
  CHECK(keys == documentedKeys("replay.md"));
  CHECK(row["trace"] == "three");
  CHECK(row["policy"] == "cistern");
  CHECK(row["device"] == "sim");
  CHECK(row["events"] == 5);
  CHECK(row["ok"] == true);
  CHECK(row["peak_requested_bytes"] == 80 * kMiB);
  CHECK(row["peak_reserved_bytes"] == 80 * kMiB);
  CHECK(row["efficiency"] == 1.0);
  CHECK(row["fit"].is_null());
  CHECK(row["ns_per_event"] > 0);
  if (pages) {
    CHECK(row["device_calls"]["create_page"] >= 2);
    CHECK_FALSE(row["device_calls"].contains("malloc"));
  } else {
    CHECK(row["device_calls"]["malloc"] == 2);
  }
  CHECK_FALSE(row["device_calls"].contains("create_stream"));
  CHECK(row["modelled_device_ms"] > 0);
  CHECK(row["host_bytes_peak"] > 0);
  CHECK(row["background_calls"].is_object());
  CHECK(row["modelled_background_ms"] >= 0);
  CHECK(row["calls_by_round"].size() == 1);
}

TEST_CASE("direct calls the device for each event and reserves what is live") {
  const TempFile trace("odd.trace", TraceText().allocate(700).allocate(0).free(0).free(1).text());
  const auto row = replaySim(trace.path(), {"--json", "--policy", "direct"}).rows().at(0);
  CHECK(row["peak_requested_bytes"] == 700);
  CHECK(row["peak_reserved_bytes"] == 1024);
  CHECK(row["device_calls"] == nlohmann::json({{"malloc", 1}, {"free", 1}}));
  CHECK(row["host_bytes_peak"] == 0);
}

TEST_CASE("policies come in the order given, each once, for every trace") {
  const TempFile one("one.trace", kThreeBlocks), two("two.trace", kLeftover);
  const auto rows =
      runCommand({"replay", "--device", "sim", "--json", "--policy", "torch-rules,direct",
                  "--policy", "cistern", "--policy", "torch-rules", one.path(), two.path()})
          .rows();
  std::vector<std::string> seen;
  for (const auto& row : rows)
    seen.push_back(row["trace"].get<std::string>() + " " + row["policy"].get<std::string>());
  CHECK(seen == std::vector<std::string>{"one torch-rules", "one direct", "one cistern",
                                         "two torch-rules", "two direct", "two cistern"});
}

TEST_CASE("programs that are made up are replayed as recorded ones are, and after them") {
  const TempFile one("one.trace", kThreeBlocks);
  const auto rows = runCommand({"replay", "--device", "sim", "--json", "--policy", "direct",
                                "--generate", "serve:1-2,stable:1", one.path()})
                        .rows();
  REQUIRE(rows.size() == 4);
  CHECK(rows[0]["trace"] == "one");
  CHECK(rows[1]["trace"] == "serve:1");
  CHECK(rows[2]["trace"] == "serve:2");
  CHECK(rows[3]["trace"] == "stable:1");

  const auto periodic = runCommand({"replay", "--device", "sim", "--json", "--policy", "direct",
                                    "--generate", "periodic:1:steps=90:jitter=25"})
                            .rows();
  REQUIRE(periodic.size() == 1);
  CHECK(periodic[0]["trace"] == "periodic:1:steps=90:jitter=25");

  // Written as a trace, it is the same program.
  const TempFile beside("beside", "");
  const std::string folder = std::filesystem::path(beside.path()).parent_path().string();
  const Outcome written = runCommand({"generate", "serve:1", "--to", folder});
  CHECK(written.status == 0);
  CHECK(written.out == folder + "/serve-1.trace.gz\n");
  const auto again = replaySim(folder + "/serve-1.trace.gz", {"--json", "--policy", "direct"});
  for (const char* key : {"trace", "events", "peak_requested_bytes", "peak_reserved_bytes"}) {
    CHECK(again.rows().at(0)[key] == rows[1][key]);
  }
  CHECK(runCommand({"generate", "serve:1", "--to", folder + "/none"}).status == 2);
}

// A step's blocks are a fifth of all memory each. Their pages move for ever if they are many.
TEST_CASE("programs of a few huge blocks come to rest, though the GPU lags behind") {
  const auto replayed = [](int seed, int steps) {
    const std::string program =
        "periodic:" + std::to_string(seed) + ":steps=" + std::to_string(steps);
    return runCommand({"replay", "--device", "sim", "--json", "--gpu-lag-us", "10000", "--generate",
                       program})
        .rows()
        .at(0);
  };
  const auto maps = [](const nlohmann::json& row) {
    return row["pages"]["recycled"].get<int>() + row["pages"]["created"].get<int>();
  };
  for (const int seed : {24, 37}) {
    INFO("seed " << seed);
    const auto first = replayed(seed, 100), both = replayed(seed, 200);
    CHECK(maps(first) > 1'000);
    CHECK(maps(both) - maps(first) <= maps(first) / 10);
    CHECK_FALSE(both["device_calls"].contains("synchronize_event"));  // nothing waits
  }
}

TEST_CASE("a repeated trace is served from what its first round has left") {
  const TempFile trace("three.trace", kThreeBlocks);
  const std::vector<std::string> five = {"--json", "--repeat", "5", "--conf"};
  const auto rowOf = [&](std::vector<std::string> more, const char* conf) {
    more.push_back(conf);
    return replaySim(trace.path(), more).rows().at(0);
  };
  const auto segments = rowOf(five, "backing:segments");
  CHECK(segments["events"] == 5);
  CHECK(segments["device_calls"]["malloc"] == 2);
  CHECK(segments["peak_reserved_bytes"] == 80 * kMiB);
  const auto pages = rowOf(five, "backing:pages");
  CHECK(pages["events"] == 5);
  CHECK(pages["device_calls"]["create_page"] ==
        rowOf({"--json", "--conf"}, "backing:pages")["device_calls"]["create_page"]);
  CHECK(pages["peak_reserved_bytes"] == 80 * kMiB);
}

TEST_CASE("a trace dealt over threads is the same requests in the same order") {
  for (const std::string trace : {"gpt2_varlen", "streams_prefetch"}) {
    if (kSlowBuild && trace == "gpt2_varlen") continue;
    INFO(trace);
    const std::string path = recordedTrace(trace);
    const auto rowOf = [&](std::vector<std::string> more) {
      more.insert(more.end(), {"--json", "--gpu-lag-us", "1000"});
      return replaySim(path, more).rows().at(0);
    };
    // Without caches no block can tell which thread it is for.
    const auto alone = rowOf({"--conf", "thread_cache:off"});
    auto dealt = rowOf({"--conf", "thread_cache:off", "--threads", "8"});
    CHECK(dealt["ok"] == true);
    for (const char* key : {"events", "peak_requested_bytes", "peak_reserved_bytes", "device_calls",
                            "calls_by_round"}) {
      CHECK(dealt[key] == alone[key]);
    }
    // With them, they are each thread's own, and hold on to little.
    dealt = rowOf({"--threads", "8"});
    CHECK(dealt["ok"] == true);
    CHECK(dealt["efficiency"].get<double>() > alone["efficiency"].get<double>() - 0.02);
  }
}

// A round is a whole recording here, which keeps nothing and whose steps are not alike.
// llama_generate and llama_recompute make a twelfth of the first round's calls in their third.
TEST_CASE("recorded programs that are repeated come to need the device little") {
  if (kSlowBuild) return skipped("a slow build");
  for (const char* threads : {"1", "8"}) {
    for (const char* trace : {"gpt2_varlen", "llama_generate", "llama_recompute", "maskrcnn",
                              "streams_prefetch", "unet_buckets"}) {
      // A million times from thread to thread would take as long as all the others.
      if (std::string_view(threads) == "8" && std::string_view(trace) == "llama_generate") continue;
      const auto row = replaySim(recordedTrace(trace), {"--json", "--gpu-lag-us", "10000",
                                                        "--repeat", "3", "--threads", threads})
                           .rows()
                           .at(0);
      INFO(threads << " threads: " << row);
      const int part = std::string_view(threads) == "1" ? 10 : 8;
      CHECK(row["calls_by_round"][2].get<int>() * part <= row["calls_by_round"][0].get<int>());
    }
  }
}

TEST_CASE("a replay on threads ends where a request is not served") {
  const TempFile trace("three.trace", kThreeBlocks);
  const Outcome outcome =
      replaySim(trace.path(), {"--json", "--threads", "3", "--conf", "limit:60MiB"});
  CHECK(outcome.status == 1);
  CHECK(outcome.rows().at(0)["ok"] == false);
}

TEST_CASE("options of --conf reach the policy cistern and no other") {
  const TempFile trace("three.trace", kThreeBlocks);
  const Outcome outcome = replaySim(
      trace.path(), {"--json", "--policy", "cistern,torch-rules", "--conf", "limit:60MiB"});
  CHECK(outcome.status == 1);
  const auto rows = outcome.rows();
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["ok"] == false);
  CHECK(rows[1]["ok"] == true);
}

TEST_CASE("a capacity that is too small ends with 1, the event and the reason") {
  const TempFile trace("three.trace", kThreeBlocks);
  for (const char* policy : {"cistern", "torch-rules", "direct"}) {
    const Outcome table = replaySim(trace.path(), {"--policy", policy, "--capacity", "60MiB"});
    INFO(table.out);
    CHECK(table.status == 1);
    CHECK_THAT(table.out, ContainsSubstring("event 2 of 5: out of memory"));
    CHECK_THAT(flat(table.out), ContainsSubstring("40.00 MiB asked"));
    CHECK(table.err.empty());

    const Outcome json =
        replaySim(trace.path(), {"--policy", policy, "--capacity", "60MiB", "--json"});
    CHECK(json.status == 1);
    CHECK(json.rows().at(0)["ok"] == false);
    CHECK(json.rows().at(0)["efficiency"].is_null());
    CHECK_THAT(json.rows().at(0)["failure"].get<std::string>(),
               ContainsSubstring("event 2 of 5: out of memory"));
  }
}

TEST_CASE("the whole report of an allocator that is out of memory is shown") {
  const TempFile trace("three.trace", kThreeBlocks);
  const std::vector<std::string> said = {
      "allowed 60.00 MiB", "largest blocks held:", "A --capacity of 80MiB would have served"};
  for (const char* format : {"", "--json", "--csv"}) {
    std::vector<std::string> args = {"--capacity", "60MiB"};
    if (*format != '\0') args.emplace_back(format);
    const Outcome outcome = replaySim(trace.path(), args);
    const bool csv = std::string_view(format) == "--csv";
    for (const std::string& part : said) {
      CHECK_THAT(flat(csv ? outcome.err : outcome.out), ContainsSubstring(part));
    }
  }
}

TEST_CASE("a capacity that is just enough serves the trace") {
  const TempFile trace("three.trace", kThreeBlocks);
  CHECK(replaySim(trace.path(), {"--capacity", "80MiB"}).status == 0);
}

TEST_CASE("fit is the peak over the least capacity that serves the trace") {
  const TempFile three("three.trace", kThreeBlocks), leftover("leftover.trace", kLeftover);
  CHECK(replaySim(three.path(), {"--json", "--fit"}).rows().at(0)["fit"] == 1.0);
  // The 40 MiB serve the 30, and the 12 need a segment beside them.
  const auto row =
      replaySim(leftover.path(), {"--json", "--fit", "--policy", "torch-rules"}).rows().at(0);
  CHECK(row["peak_reserved_bytes"] == 52 * kMiB);
  CHECK(row["fit"].get<double>() == Catch::Approx(42.0 / 52.0).epsilon(0.003));
}

TEST_CASE("CSV has one header, and a field for each of its columns in each row") {
  const TempFile one("one, two.trace", kThreeBlocks);
  const Outcome outcome = replaySim(one.path(), {"--csv", "--policy", "cistern,direct"});
  CHECK(outcome.status == 0);
  CHECK(outcome.out.rfind("trace,policy,device,events,ok,", 0) == 0);
  CHECK_THAT(outcome.out, ContainsSubstring(",device_calls.malloc,"));
  CHECK_THAT(outcome.out, ContainsSubstring("\n\"one, two\",direct,sim,5,true,"));
  CHECK(std::count(outcome.out.begin(), outcome.out.end(), '\n') == 3);
}

TEST_CASE("CSV has the documented keys as columns, but for the file, the rounds and the failure") {
  const TempFile one("one.trace", kThreeBlocks);
  std::istringstream header(replaySim(one.path(), {"--csv"}).out);
  std::string line;
  std::getline(header, line);
  std::istringstream columns(line);
  std::set<std::string> keys = {"calls_by_round", "failure", "file"};
  for (std::string column; std::getline(columns, column, ',');)
    keys.insert(column.substr(0, column.find('.')));
  CHECK(keys == documentedKeys("replay.md"));
}

TEST_CASE("a policy that cannot be held to a capacity says so, and the others are measured") {
  const TempFile trace("three.trace", kThreeBlocks);
  const std::vector<std::string> held = {"--policy", "driver-pool,cistern", "--capacity", "1GiB"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), held.begin(), held.end());
    return replaySim(trace.path(), more);
  };
  const std::string why = "policy driver-pool cannot be held to a --capacity";
  const Outcome table = with({});
  CHECK(table.status == 1);
  CHECK_THAT(table.out, ContainsSubstring("✗ " + why));
  const Outcome json = with({"--json"});
  CHECK(json.status == 1);
  const auto rows = json.rows();
  CHECK(rows.at(0)["failure"] == why);
  CHECK(rows.at(0)["ok"] == false);
  for (const char* key : {"peak_reserved_bytes", "ns_per_event", "efficiency"})
    CHECK(rows.at(0)[key].is_null());
  CHECK(rows.at(1)["ok"] == true);
  CHECK(rows.at(1)["peak_reserved_bytes"] == 80 * kMiB);
  CHECK_THAT(with({"--csv"}).out,
             ContainsSubstring("\nthree,driver-pool,sim,5,false,83886080,,,,,,"));
}

TEST_CASE("the --capacity that a replay names serves, where memory lies free too") {
  const TempFile trace("free.trace", "a 943718400 0 0\nf 0 10\na 1610612736 0 10\n");
  CHECK_THAT(flat(replaySim(trace.path(), {"--capacity", "1GiB"}).out),
             ContainsSubstring("A --capacity of 1536MiB would have served"));
  CHECK(replaySim(trace.path(), {"--capacity", "1536MiB"}).status == 0);
  CHECK(replaySim(trace.path(), {"--capacity", "1534MiB"}).status == 1);
}

TEST_CASE("a replay that is out of memory speaks of the trace's streams, and of --capacity") {
  const TempFile trace(
      "streams.trace",
      TraceText().allocate(40 * kMiB, 7).allocate(40 * kMiB, 0).allocate(40 * kMiB, 3).text());
  const std::string out = replaySim(trace.path(), {"--capacity", "100MiB"}).out;
  INFO(out);
  for (const char* said :
       {"on the stream 3 of the trace", "stream 7 of the trace: reserved 40.00 MiB",
        "stream 0 of the trace: reserved 40.00 MiB",
        "A --capacity of 120MiB would have served this request."}) {
    std::string flat = out;
    std::replace(flat.begin(), flat.end(), '\n', ' ');
    flat.erase(
        std::unique(flat.begin(), flat.end(), [](char a, char b) { return a == ' ' && b == ' '; }),
        flat.end());
    CHECK_THAT(flat, ContainsSubstring(said));
  }
  for (const char* wrong : {"stream 0x", "programs other than", "more device memory", "try again"})
    CHECK_THAT(out, !ContainsSubstring(wrong));
  const std::string limited = replaySim(trace.path(), {"--conf", "limit:100MiB"}).out;
  CHECK_THAT(flat(limited), ContainsSubstring("A limit higher by 20.00 MiB"));
}

TEST_CASE("one of a thing is in the singular") {
  const TempFile one("one.trace", TraceText().allocate(4096).text());
  const std::string out = replaySim(one.path(), {}).out;
  CHECK_THAT(out, ContainsSubstring("at its peak, 1 event\n"));
}

TEST_CASE("the table names each trace once and explains its columns") {
  const TempFile trace("three.trace", kThreeBlocks);
  const Outcome outcome = replaySim(
      trace.path(), {"--policy", "cistern,torch-rules,direct", "--fit", "--gpu-lag-us", "2500"});
  CHECK(outcome.status == 0);
  CHECK_THAT(flat(outcome.out), ContainsSubstring("2,500 µs behind the host"));
  CHECK_THAT(outcome.out, ContainsSubstring("in use: what the program asks for at its peak"));
  CHECK_THAT(outcome.out, ContainsSubstring("fits in: "));
  CHECK_THAT(outcome.out, ContainsSubstring("100.0 %"));
  const std::size_t first = outcome.out.find("three");
  REQUIRE(first != std::string::npos);
  CHECK(outcome.out.find("three", first + 1) == std::string::npos);
}

}  // namespace cistern::test
