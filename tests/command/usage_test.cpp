// Bad usage and bad files: exit status 2, one line that names what is wrong and what is allowed,
// and nothing on the output.
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
  requireRefused({}, "--help");
  requireRefused({"replays"}, "unknown command 'replays': must be one of replay, options");
  requireRefused({"replay"}, "trace");
}

TEST_CASE("an unknown name is refused with the names that are allowed") {
  const TempFile trace("small.trace", kSmallTrace);
  requireRefused({"replay", trace.path(), "--policy", "best"},
                 "unknown policy 'best': must be one of cistern, torch, direct, async");
  requireRefused({"replay", trace.path(), "--policy", "torch,best"}, "'best'");
  requireRefused({"replay", trace.path(), "--device", "gpu"},
                 "unknown device 'gpu': must be auto, sim, cuda or hip");
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
  requireRefused(withOption("--repeat", "0"), "--repeat");
  requireRefused(withOption("--repeat", "twice"), "--repeat");
  requireRefused(withOption("--gpu-lag-us", "-1"), "--gpu-lag-us");
  requireRefused(withOption("--threads", "0"), "--threads");
  requireRefused(withOption("--threads", "all"), "--threads");
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

TEST_CASE("a policy that the device cannot run ends with 1 and says what it needs") {
  const TempFile trace("small.trace", kSmallTrace);
  const Outcome outcome =
      runCommand({"replay", trace.path(), "--device", "sim", "--policy", "cistern,async"});
  CHECK(outcome.status == 1);
  CHECK(outcome.out.empty());
  CHECK_THAT(outcome.err, ContainsSubstring("policy async needs"));
}

TEST_CASE("help and version are no mistakes") {
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {"--help"}, {"--version"}, {"replay", "--help"}, {"options", "--help"}}) {
    const Outcome outcome = runCommand(args);
    CHECK(outcome.status == 0);
    CHECK(outcome.err.empty());
    CHECK_FALSE(outcome.out.empty());
  }
  CHECK_THAT(runCommand({"--version"}).out, ContainsSubstring("cistern "));
  CHECK_THAT(runCommand({"replay", "--help"}).out, ContainsSubstring("--gpu-lag-us"));
}

}  // namespace cistern::test
