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
                    "--gpu-lag-us", lag, "--policy", "cistern,torch,direct"});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.status == 0);
  }
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
  checker.freeing({memory, kMiB, one});
  CHECK(checker.verdict().empty());
  checker.allocated({memory, kMiB, two});
  CHECK_THAT(checker.verdict(), ContainsSubstring("races; the first: "));
  CHECK_THAT(checker.verdict(), ContainsSubstring("first write"));
}

}  // namespace cistern::test
