// --check, and that what it relies on would find something.
#include "allocator/base/bytes.hpp"
#include "interop/command/replay/checker.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {

TEST_CASE("no race on streams that share memory, with the GPU far behind") {
  for (const char* lag : {"0", "300", "10000"}) {
    const Outcome outcome =
        runCommand({"replay", recordedTrace("streams_prefetch"), "--device", "sim", "--check",
                    "--gpu-lag-us", lag, "--policy", "cistern,torch-rules,direct"});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.status == 0);
    CHECK_THAT(outcome.out, ContainsSubstring("Checked for races: none found."));
  }
}

TEST_CASE("every row says whether it was checked, and what was found") {
  const std::vector<std::string> args = {"replay", recordedTrace("streams_prefetch"), "--device",
                                         "sim"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = args;
    all.insert(all.end(), more.begin(), more.end());
    return runCommand(all);
  };
  const auto checked = with({"--json", "--check"}).rows().at(0);
  CHECK(checked["checked"] == true);
  CHECK(checked["races"] == 0);
  const auto unchecked = with({"--json"}).rows().at(0);
  CHECK(unchecked["checked"] == false);
  CHECK(unchecked["races"].is_null());
  CHECK_THAT(with({"--csv", "--check"}).out, ContainsSubstring(",true,0,"));
  CHECK_THAT(with({}).out, !ContainsSubstring("Checked"));
}

TEST_CASE("a check does not change what a replay reserves") {
  const std::vector<std::string> args = {"replay", recordedTrace("unet_buckets"), "--device", "sim",
                                         "--json"};
  std::vector<std::string> checked = args;
  checked.emplace_back("--check");
  CHECK(runCommand(args).rows().at(0)["peak_reserved_bytes"] ==
        runCommand(checked).rows().at(0)["peak_reserved_bytes"]);
}

TEST_CASE("the checker reports memory handed to another stream while it is in use") {
  sim::SimDevice device;
  const Stream one = device.createStream().orThrow(), two = device.createStream().orThrow();
  void* memory = toPointer(device.malloc(kMiB).orThrow());
  command::Checker checker(device);
  checker.allocated({memory, kMiB, one});
  CHECK(checker.verdict().empty());
  CHECK(checker.races() == 0);
  checker.allocated({memory, kMiB, two});
  CHECK_THAT(checker.verdict(), ContainsSubstring("1 race; the first: "));
  CHECK_THAT(checker.verdict(), ContainsSubstring("first write"));
  CHECK(checker.races() == 1);
  checker.freeing({memory, kMiB, one});
  CHECK_THAT(checker.verdict(), ContainsSubstring("2 races; the first: "));
}

}  // namespace cistern::test
