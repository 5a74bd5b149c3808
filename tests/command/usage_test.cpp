// Bad usage and bad files: exit status 2, one line that names what is wrong and what is allowed,
// and nothing on the output.
#include <sstream>

#include "allocator/base/printable.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {
namespace {

const std::string kSmallTrace = TraceText().allocate(1024).free(0).text();

void requireRefused(const std::vector<std::string>& args, const std::string& message) {
  const Outcome outcome = runCommand(args);
  INFO(outcome.err);
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, ContainsSubstring(message));
  CHECK(outcome.err.rfind("cistern: ", 0) == 0);
}

}  // namespace

TEST_CASE("no command, and an unknown one, are refused") {
  requireRefused(
      {},
      "no command is given: it is one of replay, report, run, sleep, wake, doctor, generate, "
      "options, help, version, "
      "man, completion (see --help)");
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"replays"}, {"help", "replays"}}) {
    requireRefused(args,
                   "unknown command 'replays': must be one of replay, report, run, sleep, wake, "
                   "doctor, generate, "
                   "options, help, version, man, completion; did you mean replay?");
  }
  requireRefused({"completion", "zsh"}, "shell: zsh not in {bash}");
  requireRefused({"replay"}, "replay needs a trace, or --generate");
  requireRefused({"replay", "--generate", "trains:7"}, "--generate: 'trains:7' names no program");
  requireRefused({"generate", "train:7:steps=9"}, "'train:7:steps=9' names no program");
  requireRefused({"generate", "train"}, "'train' names no program");
  requireRefused({"generate"}, "generate needs a kind of program and seeds");
}

TEST_CASE("an unknown name is refused with the names that are allowed") {
  const TempFile trace("small.trace", kSmallTrace);
  requireRefused(
      {"replay", trace.path(), "--policy", "best"},
      "unknown policy 'best': must be one of cistern, torch-rules, torch-expandable, driver-pool, "
      "direct, async");
  requireRefused({"replay", trace.path(), "--policy", "torch-rules,best"}, "'best'");
  requireRefused({"replay", trace.path(), "--device", "gpu"},
                 "unknown device 'gpu': must be auto, cuda, hip or sim");
  requireRefused({"replay", trace.path(), "--device", "sim", "--conf", "limits:3G"}, "limits");
  requireRefused({"replay", trace.path(), "--speed"}, "--speed");
}

TEST_CASE("a value that makes no sense is refused by name") {
  const TempFile trace("small.trace", kSmallTrace);
  const auto withOption = [&](const std::string& option, const std::string& value) {
    return std::vector<std::string>{"replay", trace.path(), "--device", "sim", option, value};
  };
  requireRefused(withOption("--capacity", "much"), "much");
  requireRefused(withOption("--capacity", "0"), "--capacity 0");
  requireRefused(withOption("--capacity", "1180591620717411303424"), "too large");
  requireRefused(withOption("--max-unpacked", "0"), "--max-unpacked 0");
  requireRefused(withOption("--repeat", "0"), "--repeat");
  requireRefused(withOption("--repeat", "twice"), "--repeat");
  for (const char* lag : {"-1", "ms", "10min", "2h", "1.2.3ms", "3601s", "many", "1e3"})
    requireRefused(withOption("--gpu-lag-us", lag), "--gpu-lag-us cannot be '" + std::string(lag));
  requireRefused(withOption("--threads", "0"), "--threads");
  requireRefused(withOption("--threads", "all"), "--threads");
}

TEST_CASE("a size whose unit was forgotten is refused, and bytes are taken where they are meant") {
  const TempFile trace("small.trace", kSmallTrace);
  const auto with = [&](const std::string& option, const std::string& value) {
    return std::vector<std::string>{"replay", trace.path(), "--device", "sim", option, value};
  };
  for (const std::string option : {"--capacity", "--max-unpacked"}) {
    requireRefused(with(option, "24"), option + ": 24 is 24 bytes; write 24GiB or 24MiB, or 24B");
    requireRefused(with(option, "1"), ": 1 is 1 byte; ");
  }
  for (const std::string size : {"24GiB", "2097152", "2097152B", "2048K"})
    CHECK(runCommand(with("--capacity", size)).status == 0);
  CHECK(runCommand(with("--max-unpacked", "1000B")).status == 0);
  CHECK(runCommand(with("--capacity", "24B")).status == 1);  // read, and too little
  requireRefused(with("--page-size", "20"), "or auto (20 without a unit is 20 bytes)");
  requireRefused(with("--conf", "limit:24"), "or none (24 without a unit is 24 bytes)");
  requireRefused(with("--conf", "thread_cache:8"), "(8 without a unit is 8 bytes)");
}

TEST_CASE("an empty text is no value of an option") {
  const TempFile trace("small.trace", kSmallTrace);
  for (const std::string option :
       {"--capacity", "--page-size", "--device", "--policy", "--max-unpacked"}) {
    requireRefused({"replay", trace.path(), option, ""}, option + ": needs a value");
    requireRefused({"replay", trace.path(), option + "=", "--json"}, option + " needs a value");
  }
  requireRefused({"replay", ""}, "trace: needs a value");
  for (const std::string option : {"--trace", "--json"})
    requireRefused({"run", option, "", "true"}, option + ": needs a value");
  requireRefused({"run", "--", ""}, "a program is to be run");
  requireRefused({"generate", "serve:1", "--to", ""}, "--to: needs a value");
}

TEST_CASE("an option that takes no value is given none") {
  const TempFile trace("small.trace", kSmallTrace);
  for (const std::string option : {"--json", "--fit", "--check"}) {
    for (const std::string value : {"4GiB", "2", "true"})
      requireRefused({"replay", trace.path(), option + "=" + value},
                     option + " takes no value, and '" + value + "' is given");
  }
  requireRefused({"run", "--strict=1", "true"}, "--strict takes no value");
}

TEST_CASE("what a program could not be run with is refused before it is run") {
  requireRefused({"run", "--conf", "limits:3G", "true"}, "--conf, column 1: no option is named");
  REQUIRE(setenv("CISTERN_CONF", "limits:3G", 1) == 0);
  requireRefused({"run", "true"}, "cistern: CISTERN_CONF, column 1: no option is named");
  REQUIRE(unsetenv("CISTERN_CONF") == 0);
  const TempFile file("both", "");
  requireRefused({"run", "--trace", file.path(), "--json", file.path(), "true"},
                 "--trace and --json would both write " + file.path());
}

TEST_CASE("a misspelt name is refused with the one that was meant, whatever its case") {
  const TempFile trace("small.trace", kSmallTrace);
  const auto refused = [&](const std::vector<std::string>& more, const std::string& message) {
    std::vector<std::string> args = {"replay", trace.path()};
    args.insert(args.end(), more.begin(), more.end());
    requireRefused(args, message);
  };
  for (const char* option : {"--polcy", "--Policy", "--POLICY", "-policy", "--polciy=torch"}) {
    refused({option}, "did you mean --policy?");
  }
  refused({"--JSON"}, "unknown option '--JSON'; did you mean --json?");
  refused({"--pagesize", "2MiB"}, "did you mean --page-size?");
  for (const char* policy : {"Cistern", "cistren", "CISTERN"}) {
    refused({"--policy", policy}, "did you mean cistern?");
  }
  refused({"--policy", "Torch"}, "did you mean torch-rules?");
  refused({"--policy", "best"}, "direct, async\n");
  refused({"--device", "SIM"}, "did you mean sim?");
  for (const char* conf : {"Limit:1G", "LIMIT:1G", "limt:1G", "lmiit:1G"}) {
    refused({"--conf", conf}, "near it: limit\n");
  }
  for (const char* command : {"Replay", "REPLAY", "replya", "repaly"}) {
    requireRefused({command, trace.path()}, "did you mean replay?");
  }
  requireRefused({"--verison"}, "unknown option '--verison'; did you mean --version?");
  requireRefused({"--json", "replay", trace.path()},
                 "--json comes after the command: cistern replay --json");
  requireRefused({"options", "--markdwon"}, "did you mean --markdown?");
  requireRefused({"options", "more"}, "unknown option 'more': must be one of ");
  requireRefused({"options", "limt"}, "unknown option 'limt'; did you mean limit?");
  requireRefused({"options", "limit", "more"}, "unexpected argument 'more'");
  requireRefused({"options", "limit", "--markdown"}, "--markdown");
  requireRefused({"help", "repaly"}, "did you mean replay?");
}

TEST_CASE("an error in --conf names it and the place there") {
  const TempFile trace("small.trace", kSmallTrace);
  const auto args = [&](std::vector<std::string> confs) {
    std::vector<std::string> all = {"replay", trace.path(), "--device", "sim"};
    for (std::string& conf : confs) all.insert(all.end(), {"--conf", std::move(conf)});
    return all;
  };
  requireRefused(args({"history:12,limits:3G"}), "cistern: --conf, column 12: no option is named");
  requireRefused(args({"limit:much"}), "--conf, column 1: option 'limit' cannot be 'much'");
  requireRefused(args({"history:12", "history:12,limt:1G"}), "--conf number 2, column 12: ");
}

TEST_CASE("the standard input is a trace once at most") {
  requireRefused({"replay", "-", "-"}, "the standard input (-) can be read only once");
}

TEST_CASE("no byte of a name or an argument acts on the terminal, or makes a line") {
  const std::string evil = "e\x1b[31m\nv\xc2\x9bil\xff\r\x7f";
  const std::string shown = "e\\x1b[31m\\x0av\\xc2\\x9bil\\xff\\x0d\\x7f";
  const TempFile named(evil + ".trace", kSmallTrace), bad(evil + ".bad", "a x 0 0\n");
  requireRefused({evil}, "unknown command '" + shown + "'");
  requireRefused({"replay", evil, "--device", "sim"}, shown + ": cannot be opened");
  requireRefused({"replay", bad.path(), "--device", "sim"}, shown + ".bad:1:3: ");
  requireRefused({"replay", named.path(), "--" + evil}, "'--" + shown + "'");
  for (const char* option : {"--policy", "--device", "--capacity", "--page-size", "--repeat"}) {
    const Outcome outcome = runCommand({"replay", named.path(), option, evil});
    CHECK(outcome.status == 2);
    CHECK(outcome.err.find_first_of("\x1b\r\x7f\xff") == std::string::npos);
    CHECK(outcome.err.find('\n') == outcome.err.size() - 1);
  }
  requireRefused({"replay", named.path(), "--conf", "limit:" + evil}, shown.substr(0, 9));
  for (const char* format : {"--json", "--csv", "--gpu-lag-us=0"}) {
    for (const char* capacity : {"1GiB", "1"}) {
      const Outcome outcome =
          runCommand({"replay", named.path(), "--device", "sim", "--capacity", capacity, format});
      INFO(outcome.out << outcome.err);
      const std::string all = outcome.out + outcome.err;
      CHECK(all.find_first_of("\x1b\r\x7f\xff") == std::string::npos);
      CHECK(all.find("\nv") == std::string::npos);
    }
  }
  CHECK(runCommand({"replay", named.path(), "--device", "sim", "--json"}).rows().size() == 1);
}

TEST_CASE("a page size is held to what the option page_size allows") {
  const TempFile trace("small.trace", kSmallTrace);
  for (const std::string size : {"3MiB", "32GiB", "1MiB", "0", "large", "4MiB,recycle:eager"}) {
    requireRefused({"replay", trace.path(), "--device", "sim", "--page-size", size},
                   "--page-size cannot be '" + size +
                       "'; allowed: 2 MiB to 16 GiB, a multiple of 2 MiB, or auto");
  }
  for (const char* size : {"2MiB", "20 MiB", "16GiB", "auto"}) {
    const Outcome outcome =
        runCommand({"replay", trace.path(), "--device", "sim", "--page-size", size});
    INFO(outcome.err);
    CHECK(outcome.status == 0);
  }
}

TEST_CASE("options that exclude each other are refused together") {
  const TempFile trace("small.trace", kSmallTrace);
  requireRefused({"replay", trace.path(), "--fit", "--capacity", "1G"}, "--capacity");
  requireRefused({"replay", trace.path(), "--json", "--csv"}, "--csv");
}

TEST_CASE("a pool that has no limit cannot be held to a capacity") {
  const TempFile trace("small.trace", kSmallTrace);
  requireRefused(
      {"replay", trace.path(), "--device", "sim", "--policy", "async", "--capacity", "1G"},
      "policy async cannot be held to a --capacity");
  requireRefused({"replay", trace.path(), "--device", "sim", "--policy", "driver-pool,async",
                  "--capacity", "1G"},
                 "policy driver-pool cannot be held to a --capacity");
}

TEST_CASE("a bad file is named with its line, and stops everything before anything is printed") {
  const TempFile good("good.trace", kSmallTrace);
  const TempFile bad("bad.trace", "a 1024 0 0\na many 0 0\n");
  for (const char* format : {"--json", "--csv"}) {
    requireRefused({"replay", good.path(), bad.path(), "--device", "sim", format}, "bad.trace:2:");
  }
  requireRefused({"replay", good.path(), bad.path(), "--device", "sim"}, "expected");
  requireRefused({"replay", "no/such.trace", "--device", "sim"}, "no/such.trace");
}

TEST_CASE("a file that records nothing is a bad file") {
  const TempFile good("good.trace", kSmallTrace);
  const TempFile empty("empty.trace", ""), header("header.trace", "# {\"name\":\"x\"}\n");
  for (const char* format : {"--json", "--csv", "--gpu-lag-us=0"}) {
    requireRefused({"replay", good.path(), empty.path(), "--device", "sim", format},
                   "empty.trace: is empty; `cistern run --trace FILE -- COMMAND` records");
    requireRefused({"replay", good.path(), header.path(), "--device", "sim", format},
                   "header.trace: records no allocation; `cistern run --trace FILE");
  }
  requireRefused({"replay", "/dev/zero", "--device", "sim"}, "/dev/zero: is a device, not a trace");
}

TEST_CASE("--gpu is refused where there is none to choose") {
  const TempFile trace("small.trace", kSmallTrace);
  const std::string snapshot = sampleSnapshot();
  requireRefused({"replay", trace.path(), "--gpu", "0"}, "this is a Cistern trace, and --gpu");
  requireRefused({"replay", snapshot, "--gpu", "2"},
                 "snapshot.p4.pickle: has no history of cuda:2; it has that of cuda:0, cuda:1");
  requireRefused({"replay", snapshot, "--gpu", "-1"}, "--gpu");
  requireRefused({"replay", "--generate", "serve:1", "--gpu", "0"}, "no file is given");
  const TempFile picture("all.svg", "before");
  requireRefused({"replay", snapshot, "--device", "sim", "--plot", picture.path()},
                 "snapshot.p4.pickle records cuda:0, cuda:1: choose one by --gpu N");
}

TEST_CASE("a policy that the device cannot run ends with 1 and says what it needs") {
  const TempFile trace("small.trace", kSmallTrace);
  const Outcome outcome =
      runCommand({"replay", trace.path(), "--device", "sim", "--policy", "cistern,async"});
  CHECK(outcome.status == 1);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, ContainsSubstring("policy async needs"));
}

TEST_CASE("help and version are no mistakes") {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"--version"},
                                             {"-V"},
                                             {"help"},
                                             {"version"},
                                             {"replay", "--help"},
                                             {"help", "replay"},
                                             {"options", "--help"}}) {
    const Outcome outcome = runCommand(args);
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    CHECK_FALSE(outcome.out.empty());
  }
  CHECK_THAT(runCommand({"--version"}).out, ContainsSubstring("cistern "));
  for (const char* version : {"-V", "version"})
    CHECK(runCommand({version}).out == runCommand({"--version"}).out);
  CHECK_THAT(runCommand({"replay", "--help"}).out, ContainsSubstring("--gpu-lag-us"));
  for (const char* command :
       {"replay", "run", "doctor", "generate", "options", "help", "version", "man", "completion"}) {
    CHECK(runCommand({"help", command}).out == runCommand({command, "--help"}).out);
    CHECK_THAT(runCommand({"help"}).out, ContainsSubstring(std::string("\n  ") + command));
  }
  CHECK(runCommand({"help"}).out == runCommand({"--help"}).out);
}

TEST_CASE("help fits a terminal of 80 columns") {
  for (const char* command : {"help", "replay", "run", "doctor", "generate", "options", "version",
                              "man", "completion", ""}) {
    std::istringstream lines(runCommand(*command == '\0'
                                            ? std::vector<std::string>{"--help"}
                                            : std::vector<std::string>{"help", command})
                                 .out);
    for (std::string line; std::getline(lines, line);) {
      INFO(command << ": " << line);
      CHECK(columnsOf(line) <= 80);
      CHECK((line.empty() || line.back() != ' '));
    }
  }
}

}  // namespace cistern::test
