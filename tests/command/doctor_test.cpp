// `cistern doctor`, and what it tries.
#include <algorithm>
#include <cstdlib>

#include "cistern/sim.hpp"
#include "interop/command/doctor/self_test.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

using Catch::Matchers::ContainsSubstring;

namespace cistern::test {
namespace {

using command::Finding;

std::size_t problems(Device& device) {
  std::size_t count = 0;
  for (const Finding& finding : command::selfTest(device)) count += !finding.problem.empty();
  return count;
}

}  // namespace

TEST_CASE("doctor finds nothing wrong with a simulated device") {
  const Outcome outcome = runCommand({"doctor", "--device", "sim"});
  CHECK(outcome.status == 0);
  CHECK_THAT(outcome.out, ContainsSubstring("sim 0: simulated device"));
  CHECK_THAT(outcome.out, ContainsSubstring("pages of 2.00 MiB and more"));
  CHECK_THAT(outcome.out, !ContainsSubstring("NO: "));
}

TEST_CASE("doctor gives back what it took, and what it tries is in order") {
  const auto device = sim::makeDevice();
  CHECK(problems(*device) == 0);
  CHECK(device->races().empty());
  const MemoryInfo memory = device->memoryInfo().orThrow();
  CHECK(memory.free_bytes == memory.total_bytes);
}

TEST_CASE("doctor says what a device has not, and what fails there") {
  sim::SimConfig config;
  config.virtual_memory = false;
  const auto plain = sim::makeDevice(config);
  const std::vector<Finding> found = command::selfTest(*plain);
  CHECK(std::count_if(found.begin(), found.end(), [](const Finding& f) { return f.skipped; }) == 1);
  CHECK(problems(*plain) == 0);
  for (const Call call : {Call::kCreatePage, Call::kCopy, Call::kInstantiate}) {
    const auto device = sim::makeDevice();
    device->faults().failAll(call, ErrorKind::kOther);
    CHECK(problems(*device) > 0);
  }
}

TEST_CASE("doctor says what is wrong with the options of the environment") {
  REQUIRE(setenv("CISTERN_CONF", "recycle:eager", 1) == 0);
  const Outcome well = runCommand({"doctor", "--device", "sim"});
  CHECK(well.status == 0);
  CHECK_THAT(well.out, ContainsSubstring("CISTERN_CONF: recycle:eager\n"));
  REQUIRE(setenv("CISTERN_CONF", "recycle:never", 1) == 0);
  const Outcome wrong = runCommand({"doctor", "--device", "sim"});
  CHECK(wrong.status == 1);
  CHECK_THAT(wrong.out, ContainsSubstring("CISTERN_CONF, ") && ContainsSubstring("'never'"));
  REQUIRE(unsetenv("CISTERN_CONF") == 0);
  CHECK_THAT(runCommand({"doctor", "--device", "sim"}).out,
             ContainsSubstring("CISTERN_CONF: not set\n"));
}

TEST_CASE("doctor refuses a backend that there is not") {
  const Outcome outcome = runCommand({"doctor", "--device", "metal"});
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
}

}  // namespace cistern::test
