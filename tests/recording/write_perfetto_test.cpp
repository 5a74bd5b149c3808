#include "interop/recording/formats/write_perfetto.hpp"

#include <nlohmann/json.hpp>

#include "interop/recording/formats/pool_counters.hpp"
#include "tests/recording/formats_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::testing {
namespace {

nlohmann::json written(const std::vector<Recording>& recordings) {
  const test::TemporaryFile file("out.json");
  writePerfetto(recordings, file.path());
  return nlohmann::json::parse(contentOf(file.path()))["traceEvents"];
}

std::vector<nlohmann::json> ofPhase(const nlohmann::json& events, const std::string& phase) {
  std::vector<nlohmann::json> chosen;
  for (const auto& event : events) {
    if (event["ph"] == phase) chosen.push_back(event);
  }
  return chosen;
}

TEST_CASE("Perfetto gets counters of what is asked for and reserved, in all and by pool") {
  const auto counters = ofPhase(written({sampleRecording()}), "C");
  std::uint64_t most = 0, reserved = 0, of_pool = 0, last = 0;
  for (const auto& counter : counters) {
    const auto bytes = counter["args"]["bytes"].get<std::uint64_t>();
    if (counter["name"] == "asked") most = std::max(most, bytes);
    if (counter["name"] == "reserved") reserved = bytes;
    if (counter["name"] == "reserved, pool {0, 7}") of_pool = bytes;
    CHECK(counter["ts"].get<std::uint64_t>() >= last);
    last = counter["ts"].get<std::uint64_t>();
  }
  CHECK(most == 1600);
  CHECK(reserved == 65536 + 4096);
  CHECK(of_pool == 4096);
}

TEST_CASE("Perfetto gets each failed request and each mark as a moment") {
  const auto moments = ofPhase(written({sampleRecording()}), "i");
  REQUIRE(moments.size() == 2);
  CHECK(moments[0]["name"] == "step 1");
  CHECK(moments[0]["ts"] == 20);
  CHECK(moments[1]["name"] == "out of memory: 4.00 KiB");
  CHECK(moments[1]["args"]["advice"] == "less");
  CHECK(moments[1]["args"]["stack"] == "outer\n");
}

TEST_CASE("Perfetto gets a slice for each large block, with its label and stack") {
  const auto events = written({parsed("a 5 0 0\n"), sampleRecording()});
  const auto begun = ofPhase(events, "b"), ended = ofPhase(events, "e");
  REQUIRE(begun.size() == 4);
  REQUIRE(ended.size() == 4);
  CHECK(begun[1]["name"] == "forward / layer 0");
  CHECK(begun[1]["pid"] == 2);
  CHECK(begun[1]["args"]["stack"] == "inner \"quoted\" (a.py:7)\nouter\n");
  CHECK(begun[1]["args"]["address"] == "0x100000");
  CHECK(begun[1]["ts"] == 0);
  CHECK(ended[1]["ts"] == 27);
  CHECK(ended[1]["id"] == begun[1]["id"]);
  CHECK(ended[3]["ts"] == 32);  // it lives to the end
}

TEST_CASE("counters stay few, and lose no peak") {
  std::string content = "#\n";
  for (int i = 0; i < 10'000; ++i) {
    content +=
        "a " + std::to_string(i == 7'000 ? 1 << 20 : 1) + " 0 1\nf " + std::to_string(i) + " 1\n";
  }
  const auto samples = poolSamples(parsed(content), 50, 4);
  std::uint64_t most = 0;
  for (const PoolSample& sample : samples) most = std::max(most, sample.asked.at(0));
  CHECK(samples.size() < 160);
  CHECK(most == 1 << 20);
}

}  // namespace
}  // namespace cistern::recording::testing
