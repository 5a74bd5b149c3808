// `cistern doctor`, and what it tries.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "allocator/device/backends.hpp"
#include "cistern/sim.hpp"
#include "interop/command/doctor/examination.hpp"
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

TEST_CASE("doctor --json has the same findings under the keys of docs/run.md") {
  REQUIRE(setenv("CISTERN_CNF", "recycle:off", 1) == 0);
  const Outcome outcome = runCommand({"doctor", "--device", "sim", "--json"});
  REQUIRE(unsetenv("CISTERN_CNF") == 0);
  CHECK(outcome.status == 0);
  const nlohmann::json all = nlohmann::json::parse(outcome.out);
  CHECK(all["ok"] == true);
  CHECK(all["backends"].size() == 1);
  CHECK(all["backends"][0]["missing"] == nullptr);
  const nlohmann::json device = all["backends"][0]["devices"][0];
  CHECK(device["page_bytes"] == 2 << 20);
  CHECK(device["free_bytes"] <= device["total_bytes"]);
  CHECK(device["tests"].size() == 4);
  for (const nlohmann::json& test : device["tests"]) CHECK(test["problem"] == nullptr);
  const auto& environment = all["environment"];
  CHECK(std::count_if(environment.begin(), environment.end(), [](const nlohmann::json& setting) {
          return setting["name"] == "CISTERN_CNF" && setting["problem"] == nullptr &&
                 setting["warning"] ==
                     "nothing reads a variable named CISTERN_CNF; did you mean CISTERN_CONF?";
        }) == 1);
  // The page lists every key that is there.
  std::ifstream file(std::string(CISTERN_SOURCE_DIR) + "/docs/run.md");
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  for (const nlohmann::json& part :
       {all, all["run"], all["backends"][0], device, device["tests"][0], environment[0]}) {
    for (const auto& [key, value] : part.items())
      CHECK_THAT(page, ContainsSubstring("`" + key + "`"));
  }
}

TEST_CASE("doctor examines what CISTERN_BACKEND names, and says which names there are") {
  REQUIRE(setenv("CISTERN_BACKEND", "sim", 1) == 0);
  const Outcome sim = runCommand({"doctor"});
  CHECK(sim.status == 0);
  CHECK_THAT(sim.out, ContainsSubstring("CISTERN_BACKEND: sim\n") && ContainsSubstring("sim 0: "));
  REQUIRE(setenv("CISTERN_BACKEND", "simm", 1) == 0);
  const Outcome wrong = runCommand({"doctor", "--device", "sim"});
  CHECK(wrong.status == 1);
  CHECK_THAT(wrong.out, ContainsSubstring("CISTERN_BACKEND: unknown backend 'simm': must be auto, "
                                          "cuda, hip or sim; did you mean sim?\n"));
  REQUIRE(unsetenv("CISTERN_BACKEND") == 0);
}

TEST_CASE("doctor names the runtime of each vendor that has one here") {
  const Outcome outcome = runCommand({"doctor"});
  for (const char* vendor : {"cuda", "hip"}) {
    const Backend& backend = *findBackend(vendor);
    const std::string runtime = backend.runtime == nullptr ? "" : backend.runtime();
    const std::string line = std::string(vendor) + " runtime: " + runtime + "\n";
    if (runtime.empty()) {
      CHECK_THAT(outcome.out, !ContainsSubstring(std::string(vendor) + " runtime:"));
    } else {
      CHECK_THAT(outcome.out, ContainsSubstring(line));
    }
  }
}

TEST_CASE("doctor refuses a backend that there is not") {
  const Outcome outcome = runCommand({"doctor", "--device", "metal"});
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
}

}  // namespace cistern::test
