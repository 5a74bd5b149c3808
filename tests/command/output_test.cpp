// What is printed: that it arrives, how wide it is, and what it says at the end.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <streambuf>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/printable.hpp"
#include "interop/command/run.hpp"
#include "interop/command/wrap.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {
namespace {

using Args = std::vector<std::string>;

const std::string kOneBlock = TraceText().allocate(1024).free(0).text();

/// A stream that takes so many characters and then no more.
class Narrow final : public std::streambuf {
 public:
  explicit Narrow(std::size_t most) : left_(most) {}

 private:
  int_type overflow(int_type c) override {
    if (left_ == 0) return traits_type::eof();
    --left_;
    return traits_type::not_eof(c);
  }
  std::size_t left_;
};

std::vector<std::string> linesOf(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Terminals give a dash and a part of a rule one column, though columnsOf() is careful with them.
std::size_t columnsOfTable(std::string line) {
  for (const std::string mark : {"─", "–", "✗", "µ"}) {
    for (std::size_t at = 0; (at = line.find(mark, at)) != line.npos;)
      line.replace(at, mark.size(), "-");
  }
  return columnsOf(line);
}

}  // namespace

TEST_CASE("an output that cannot be written is an error, whatever is printed") {
  const TempFile trace("small.trace", kOneBlock);
  const Args replay = {"replay", trace.path(), "--device", "sim"};
  std::vector<Args> lines = {{"--help"},
                             {"--version"},
                             {"options"},
                             {"options", "--help"},
                             {"options", "--markdown"},
                             {"replay", "--help"},
                             replay};
  for (const char* format : {"--json", "--csv"}) {
    lines.push_back(replay);
    lines.back().emplace_back(format);
  }
  for (const Args& args : lines) {
    INFO(args.front() << " " << args.back());
    std::ostringstream err;
    std::ofstream full("/dev/full");
    CHECK(command::run(args, full, err) == 1);
    CHECK(err.str() == "cistern: the output cannot be written: No space left on device\n");

    const std::size_t whole = runCommand(args).out.size();
    for (const std::size_t most : {std::size_t{0}, whole / 2}) {
      Narrow narrow(most);
      std::ostream out(&narrow);
      CHECK(command::run(args, out, err) == 1);
      CHECK(out.exceptions() == std::ios::goodbit);  // or the end of the program would throw
    }
  }
}

TEST_CASE("bad usage is bad usage, though the output cannot be written") {
  std::ofstream full("/dev/full");
  std::ostringstream err;
  CHECK(command::run({"replay", "no such", "--device", "sim"}, full, err) == 2);
}

TEST_CASE("nothing that is printed for people is wider than a terminal of 80 columns") {
  const TempFile named(std::string(180, 'n') + ".trace",
                       TraceText().allocate(1023 * kMiB, 0, 1).allocate(1023 * kMiB).text());
  const TempFile wide("wide.trace", "# {\"name\": \"\xe7\xa3\x81\xe7\xa3\x81" +
                                        std::string(60, '.') + "\"}\n" + kOneBlock);
  const std::string all = "cistern,torch-rules,torch-expandable,driver-pool,direct";
  std::vector<Args> lines;
  for (const std::string& policies : {std::string("cistern"), all}) {
    for (const Args& more : std::vector<Args>{{},
                                              {"--fit"},
                                              {"--capacity", "60MiB"},
                                              {"--capacity", "2046MiB", "--check"},
                                              {"--fit", "--repeat", "1000", "--threads", "2"}}) {
      for (const char* conf : {"backing:pages", "backing:segments,recycle_budget:0.125"}) {
        lines.push_back({"replay", named.path(), wide.path(), "--device", "sim", "--gpu-lag-us",
                         "3599999999", "--policy", policies, "--conf", conf});
        lines.back().insert(lines.back().end(), more.begin(), more.end());
      }
    }
  }
  for (const Args& args : lines) {
    for (const std::string& line : linesOf(runCommand(args).out)) {
      INFO(line);
      CHECK(columnsOfTable(line) <= 80);
    }
  }
}

TEST_CASE("no help is wider than 100 columns") {
  for (const char* command : {"replay", "run", "generate", "doctor", "options"}) {
    for (const std::string& line : linesOf(runCommand({command, "--help"}).out)) {
      INFO(line);
      CHECK(columnsOfTable(line) <= 100);
    }
  }
}

TEST_CASE("the table ends with what was saved, and at what cost") {
  const TempFile one("one.trace", TraceText().allocate(40 << 20).text());
  const TempFile two("two.trace", TraceText().allocate(20 << 20).free(0).text());
  const std::string out =
      runCommand({"replay", one.path(), two.path(), "--device", "sim", "--policy",
                  "cistern,torch-rules,direct", "--conf", "backing:segments"})
          .out;
  INFO(out);
  CHECK_THAT(flat(out),
             ContainsSubstring("the 2 programs ask for 60.00 MiB at their peaks, added up"));
  CHECK_THAT(flat(out), ContainsSubstring("cistern reserves 60.00 MiB to serve them: as much as "
                                          "torch-rules, as much as direct."));
  CHECK_THAT(flat(out), ContainsSubstring("Calls to the driver that the program waits for: "));
  CHECK_THAT(flat(out), ContainsSubstring("; under torch-rules "));
  CHECK_THAT(flat(out), ContainsSubstring(", under direct 3 ("));
  CHECK_THAT(out, ContainsSubstring("not PyTorch"));
}

TEST_CASE("the summary counts the calls that the table has, and no others") {
  TraceText text;
  for (int i = 0; i < 40; ++i) text.allocate(20 << 20).free(std::uint64_t(i));
  const TempFile trace("pool.trace", text.text());
  const Args args = {"replay", trace.path(), "--device", "sim", "--policy", "driver-pool"};
  const std::string out = runCommand(args).out;
  INFO(out);
  const std::string row = out.substr(out.find("\n  driver-pool"));
  std::istringstream cells(row);
  std::string policy, reserved, unit, efficiency, percent, ns, calls;
  cells >> policy >> reserved >> unit >> efficiency >> percent >> ns >> calls;
  CHECK_THAT(flat(out), ContainsSubstring("that the program waits for: " + calls + " ("));
}

TEST_CASE("what fits by --fit is served under that --capacity, and a little less is not") {
  // A driver takes 2 MiB for a block just above 1 MiB.
  std::string text;
  for (int i = 0; i < 100; ++i) text += "a 1048577 0 10\n";
  const TempFile trace("many.trace", text);
  for (const char* policy : {"cistern", "torch-rules", "torch-expandable", "direct"}) {
    const Args args = {"replay", trace.path(), "--device", "sim", "--json", "--policy", policy};
    const auto with = [&](const Args& more) {
      Args all = args;
      all.insert(all.end(), more.begin(), more.end());
      return runCommand(all);
    };
    const std::uint64_t fits = with({"--fit"}).rows().at(0)["fit_bytes"];
    INFO(policy << " fits in " << fits);
    CHECK(with({"--capacity", std::to_string(fits) + "B"}).status == 0);
    const std::uint64_t asked = 100 * 1048577;
    if (fits > asked) CHECK(with({"--capacity", std::to_string(asked - 1) + "B"}).status == 1);
  }
}

TEST_CASE("--fit says for each trace and policy what serves it, as --capacity takes it") {
  const TempFile one("one.trace", TraceText().allocate(40 * kMiB).text());
  const TempFile odd("odd.trace", TraceText().allocate(40 * kMiB + 1).text());
  const Args args = {"replay", one.path(), odd.path(), "--device",
                     "sim",    "--fit",    "--policy", "direct,driver-pool"};
  const std::string out = runCommand(args).out;
  INFO(out);
  CHECK_THAT(out, ContainsSubstring("  fits in  "));
  CHECK_THAT(out, ContainsSubstring(" 40MiB "));
  CHECK_THAT(out, ContainsSubstring(" 41MiB "));
  Args json = args;
  json.emplace_back("--json");
  const auto rows = runCommand(json).rows();
  CHECK(rows.at(0)["fit_bytes"] == 40 * kMiB);
  CHECK(rows.at(1)["fit_bytes"].is_null());
}

// Expandable segments may need more where the device is that small.
TEST_CASE("a capacity that --fit prints serves the trace") {
  for (const std::string policy : {"cistern", "torch-rules", "direct"}) {
    const Args base = {"replay", recordedTrace("streams_prefetch"), "--device", "sim", "--policy",
                       policy};
    Args fit = base, held = base;
    fit.emplace_back("--fit");
    std::istringstream words(runCommand(fit).out);
    std::string word;
    while (words >> word && !(word.ends_with("MiB") && word.size() > 3)) {
    }
    held.insert(held.end(), {"--capacity", word});
    INFO(policy << ' ' << word);
    CHECK(runCommand(held).status == 0);
  }
}

TEST_CASE("the table, JSON and CSV say what was run") {
  const TempFile trace("one.trace", TraceText().allocate(40 << 20).text());
  REQUIRE(setenv("CISTERN_CONF", "history:1,limit:1GiB", 1) == 0);
  const Args args = {
      "replay",       trace.path(), "--device",   "sim", "--policy",  "cistern,direct",
      "--conf",       "history:2",  "--repeat",   "3",   "--threads", "2",
      "--gpu-lag-us", "10ms",       "--capacity", "1GiB"};
  const auto with = [&](const char* format) {
    Args more = args;
    more.emplace_back(format);
    return runCommand(more);
  };
  const std::string version = linesOf(runCommand({"--version"}).out).at(0).substr(8);
  const std::string table = runCommand(args).out;
  const auto rows = with("--json").rows();
  const std::string csv = with("--csv").out;
  REQUIRE(unsetenv("CISTERN_CONF") == 0);
  INFO(table);
  CHECK_THAT(flat(table),
             ContainsSubstring("Replayed 3 times on 2 threads on the simulated device of "
                               "192.00 GiB, whose GPU is 10,000 µs behind the host, by "
                               "cistern " +
                               version + "."));
  CHECK_THAT(flat(table), ContainsSubstring("Options of cistern: limit:1 GiB,history:2."));
  CHECK_THAT(flat(table), ContainsSubstring("Each policy may reserve 1.00 GiB at most."));
  CHECK_THAT(flat(table), !ContainsSubstring("Options of direct"));
  CHECK(rows.at(0)["conf"] == "limit:1 GiB,history:2");
  CHECK(rows.at(1)["conf"].is_null());
  for (const auto& row : rows) {
    CHECK(row["capacity_bytes"] == kGiB);
    CHECK(row["gpu_lag_us"] == 10'000);
    CHECK(row["repeat"] == 3);
    CHECK(row["threads"] == 2);
    CHECK(row["version"] == version);
  }
  CHECK_THAT(csv, ContainsSubstring(",\"limit:1 GiB,history:2\",1073741824,10000,3,2,"));
  CHECK_THAT(csv, ContainsSubstring(",false,,,1073741824,10000,3,2,"));
}

TEST_CASE("options that no policy reads are said, and a policy that is named twice") {
  const TempFile trace("one.trace", TraceText().allocate(40 << 20).text());
  const auto ran = [&](const Args& more) {
    Args args = {"replay", trace.path(), "--device", "sim"};
    args.insert(args.end(), more.begin(), more.end());
    return runCommand(args);
  };
  const Outcome unread = ran({"--policy", "torch-expandable", "--conf", "history:2", "--page-size",
                              "2MiB", "--no-recycle"});
  CHECK(unread.status == 0);
  for (const std::string option : {"--conf", "--page-size", "--no-recycle"}) {
    CHECK_THAT(unread.err, ContainsSubstring("cistern: note: " + option +
                                             " has no effect: policy cistern reads it, and "
                                             "torch-expandable does not\n"));
  }
  CHECK_THAT(flat(unread.out), ContainsSubstring("No policy here reads options: "));
  CHECK(ran({"--policy", "torch-expandable,cistern", "--conf", "history:2"}).err.empty());

  REQUIRE(setenv("CISTERN_CONF", "history:2", 1) == 0);
  const Outcome environment = ran({"--policy", "direct"});
  REQUIRE(unsetenv("CISTERN_CONF") == 0);
  CHECK(environment.err.empty());
  CHECK_THAT(flat(environment.out), ContainsSubstring("No policy here reads options: history:2."));

  const Outcome twice = ran({"--policy", "torch-rules,direct,torch-rules", "--json"});
  CHECK(twice.rows().size() == 2);
  CHECK(twice.err == "cistern: note: --policy names torch-rules more than once: it has one row\n");
}

TEST_CASE("what a program waits for stands beside its own time") {
  const TempFile timed("timed.trace",
                       TraceText().allocate(1000, 0, 500'000).free(0, 500'000).text());
  const TempFile untimed("untimed.trace", TraceText().allocate(1000, 0, 0).free(0, 0).text());
  const Args args = {"replay",   timed.path(), untimed.path(), "--device", "sim",
                     "--repeat", "2",          "--policy",     "direct"};
  Args json = args;
  json.emplace_back("--json");
  const auto rows = runCommand(json).rows();
  CHECK(rows.at(0)["program_ms"] == 2000.0);
  CHECK(rows.at(1)["program_ms"].is_null());
  const double share = rows.at(0)["modelled_device_ms"].get<double>() / 2000 * 100;
  const std::string out = runCommand(args).out;
  INFO(out);
  CHECK_THAT(out, ContainsSubstring("device ms  of time\n"));
  CHECK_THAT(out, ContainsSubstring(fmt::format("  {:.1f} %\n", share)));
  CHECK_THAT(out, ContainsSubstring("       –\n"));
}

TEST_CASE("speed has a column only if nothing but the policy works in the loop") {
  const TempFile trace("one.trace", kOneBlock);
  const TempFile picture("one.svg", "");
  const Args args = {"replay", trace.path(), "--device", "sim"};
  CHECK_THAT(runCommand(args).out, ContainsSubstring("ns/event"));
  for (const Args& more : std::vector<Args>{{"--gpu-lag-us", "10000"},
                                            {"--check"},
                                            {"--threads", "2"},
                                            {"--plot", picture.path()}}) {
    Args with = args;
    with.insert(with.end(), more.begin(), more.end());
    INFO(more.front());
    CHECK_THAT(runCommand(with).out, !ContainsSubstring("ns/event"));
  }
}

TEST_CASE("a trace that one policy did not serve is not compared") {
  const TempFile trace("one.trace", TraceText().allocate(40 << 20).text());
  const std::string out = runCommand({"replay", trace.path(), "--device", "sim", "--policy",
                                      "cistern,direct", "--conf", "limit:20MiB"})
                              .out;
  CHECK_THAT(out, ContainsSubstring("✗ event 1 of 1"));
  CHECK(out.find("In short") == std::string::npos);
}

TEST_CASE("each GPU of a snapshot has its rows, and --gpu chooses one") {
  const auto names = [](const Args& more) {
    Args args = {"replay", sampleSnapshot(), "--device", "sim", "--json"};
    args.insert(args.end(), more.begin(), more.end());
    Args found;
    for (const auto& row : runCommand(args).rows()) found.push_back(row["trace"]);
    return found;
  };
  const std::string first = "snapshot.p4 [cuda:0]", second = "snapshot.p4 [cuda:1]";
  CHECK(names({}) == Args{first, second});
  CHECK(names({"--policy", "cistern,direct"}) == Args{first, first, second, second});
  CHECK(names({"--gpu", "1"}) == Args{second});
  const TempFile picture("one.svg", "before");
  CHECK(names({"--gpu", "0", "--plot", picture.path()}) == Args{first});
}

TEST_CASE("memory that no row has is named on the error output") {
  const TempFile snapshot("idle.pickle",
                          "(dVdevice_traces\n(l(l(dVaction\nValloc\nsVaddr\nI1\nsVsize\nI8\ns"
                          "Vstream\nI0\nsaasVsegments\n(l(dVdevice\nI1\nsVaddress\nI1\nsVstream\n"
                          "I0\nsVblocks\n(l(dVsize\nI512\nsVstate\nVactive_allocated\nsasas.");
  const Outcome outcome = runCommand({"replay", snapshot.path(), "--device", "sim", "--json"});
  CHECK(outcome.status == 0);
  CHECK(outcome.rows().size() == 1);
  CHECK(outcome.err == "cistern: " + snapshot.path() +
                           ": cuda:1 has 1 block of 512 B and no history, and is left out\n");
}

TEST_CASE("rows of one name are told apart by their files") {
  const std::string content = "# {\"name\": \"train\"}\n" + kOneBlock;
  const TempFile one("a.trace", content), two("b.trace", content), other("c.trace", kOneBlock);
  const Args args = {"replay", one.path(), two.path(), other.path(), "--device", "sim"};
  const auto with = [&](const Args& more) {
    Args all = args;
    all.insert(all.end(), more.begin(), more.end());
    return runCommand(all);
  };
  const auto rows = with({"--json", "--generate", "serve:1"}).rows();
  REQUIRE(rows.size() == 4);
  CHECK(rows[0]["trace"] == "train");
  CHECK(rows[0]["file"] == one.path());
  CHECK(rows[1]["trace"] == "train");
  CHECK(rows[1]["file"] == two.path());
  CHECK(rows[2]["file"] == other.path());
  CHECK(rows[3]["file"].is_null());
  const auto lines = linesOf(with({"--csv"}).out);
  CHECK(lines[1].rfind("train (" + one.path() + "),", 0) == 0);
  CHECK(lines[2].rfind("train (" + two.path() + "),", 0) == 0);
  CHECK(lines[3].rfind("c,", 0) == 0);
  const std::string table = with({}).out;
  CHECK_THAT(table, ContainsSubstring("a.trace): 1.00 KiB at its peak"));
  CHECK_THAT(table, ContainsSubstring("b.trace): 1.00 KiB at its peak"));
  CHECK_THAT(table, ContainsSubstring("\nc: 1.00 KiB at its peak"));
  const auto twice = runCommand({"replay", one.path(), one.path(), "--device", "sim", "--csv"});
  CHECK_THAT(twice.out, !ContainsSubstring("train ("));
  CHECK_THAT(with({"--csv", "--capacity", "1B"}).err,
             ContainsSubstring("train (" + two.path() + "), policy cistern"));
}

TEST_CASE("a program that asks for no bytes is served, and has no efficiency") {
  const TempFile trace("zero.trace", TraceText().allocate(0).free(0).text());
  const Outcome outcome = runCommand({"replay", trace.path(), "--device", "sim", "--json"});
  CHECK(outcome.status == 0);
  REQUIRE(outcome.rows().size() == 1);
  CHECK(outcome.rows()[0]["ok"] == true);
  CHECK(outcome.rows()[0]["efficiency"].is_null());
}

TEST_CASE("colours are for those who want them") {
  const TempFile trace("small.trace", kOneBlock);
  for (const bool colours : {false, true}) {
    std::ostringstream out, err;
    const Args args = {"replay", trace.path(), "--device", "sim"};
    CHECK(command::run(args, command::Console{out, err, false, colours}) == 0);
    CHECK((out.str().find('\x1b') != std::string::npos) == colours);
  }
}

TEST_CASE("lines are broken between words, and keep to their indent") {
  const std::string word(32, 'w');
  CHECK(command::wrapped("a b") == "a b\n");
  CHECK(command::wrapped("") == "\n");
  CHECK(command::wrapped(word + " " + word + " " + word, "  ", "- ") ==
        "- " + word + " " + word + "\n  " + word + "\n");
  CHECK(command::wrapped(std::string(120, 'x') + " y", " ") ==
        " " + std::string(120, 'x') + "\n y\n");
}

}  // namespace cistern::test
