// --gpu-lag-us: the simulated GPU has work to be behind with, and the recorded time stays what it
// is.
#include <algorithm>

#include "allocator/base/bytes.hpp"
#include "interop/command/replay/stage.hpp"
#include "tests/command/command.hpp"
#include "tests/support/catch.hpp"

namespace cistern::test {
namespace {

// A block ends, and another stream wants as much right after.
const std::string kHandedOn =
    TraceText().allocate(40 * kMiB, 0).free(0).allocate(40 * kMiB, 1).free(1).text();

nlohmann::json replayHandedOn(const std::string& lag_us, std::vector<std::string> more = {}) {
  const TempFile trace("handed_on.trace", kHandedOn);
  more.insert(more.begin(), {"replay", trace.path(), "--device", "sim", "--json", "--conf",
                             "backing:segments", "--gpu-lag-us", lag_us});
  return runCommand(more).rows().at(0);
}

command::ReplaySettings simSettings(std::uint64_t lag_us) {
  command::ReplaySettings settings;
  settings.device = "sim";
  settings.gpu_lag_us = lag_us;
  return settings;
}

}  // namespace

TEST_CASE("a lag keeps memory from other streams until its last user has caught up") {
  CHECK(replayHandedOn("0")["peak_reserved_bytes"] == 40 * kMiB);
  CHECK(replayHandedOn("2500")["peak_reserved_bytes"] == 80 * kMiB);
  // The streams rest for 10 us between events, which is longer than this.
  CHECK(replayHandedOn("5")["peak_reserved_bytes"] == 40 * kMiB);
}

TEST_CASE("held to a capacity, the stream that takes memory over waits for work that lags") {
  const auto in_time = replayHandedOn("0", {"--capacity", "60MiB"});
  const auto behind = replayHandedOn("2500", {"--capacity", "60MiB"});
  for (const auto& row : {in_time, behind}) {
    CHECK(row["ok"] == true);
    CHECK(row["device_calls"]["malloc"] == 1);
  }
  CHECK_FALSE(in_time["device_calls"].contains("wait_event"));
  CHECK(behind["device_calls"]["wait_event"] == 1);
  CHECK(behind["device_calls"]["record_event"] > 0);
}

TEST_CASE("a check lags as the work that stands in for it does") {
  CHECK(replayHandedOn("2500", {"--check"})["peak_reserved_bytes"] == 80 * kMiB);
}

TEST_CASE("queued work is complete one lag later") {
  command::Stage stage(simSettings(1'000), 2);
  REQUIRE(stage.lags());
  stage.queueWork(stage.stream(0));
  CHECK_FALSE(stage.device().queryStream(stage.stream(0)).orThrow());
  CHECK(stage.device().queryStream(stage.stream(1)).orThrow());
  stage.pass(900);
  stage.settle();
  CHECK_FALSE(stage.device().queryStream(stage.stream(0)).orThrow());
  stage.pass(200);
  stage.settle();
  CHECK(stage.device().queryStream(stage.stream(0)).orThrow());
}

TEST_CASE("queueing work takes none of the recorded time") {
  command::Stage stage(simSettings(1'000), 1);
  const std::uint64_t before = stage.sim()->now();
  for (int i = 0; i < 100; ++i) {
    stage.queueWork(stage.stream(0));
    stage.pass(i % 10 == 9 ? 50 : 0);  // ten events in quick succession, then a pause
  }
  stage.settle();
  CHECK(stage.sim()->now() - before == 500'000);
}

TEST_CASE("without a lag there is nothing to be behind with") {
  CHECK_FALSE(command::Stage(simSettings(0), 1).lags());
}

}  // namespace cistern::test
