#include "interop/recording/formats/write_speedscope.hpp"

#include <nlohmann/json.hpp>

#include "tests/recording/formats_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::testing {
namespace {

// A profile's samples as text: "outer;inner 100".
std::vector<std::string> shown(const nlohmann::json& file, std::size_t profile) {
  const nlohmann::json& frames = file["shared"]["frames"];
  const nlohmann::json& of = file["profiles"][profile];
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < of["samples"].size(); ++i) {
    std::string line;
    for (const auto& frame : of["samples"][i]) {
      line += frames.at(frame.get<std::size_t>())["name"].get<std::string>() + ";";
    }
    lines.push_back(line + of["weights"][i].dump());
  }
  return lines;
}

TEST_CASE("speedscope gets the bytes of each stack at the peak and at the end") {
  const test::TemporaryFile file("out.json");
  writeSpeedscope({sampleRecording(), parsed("a 5 0 0\n")}, file.path());
  const auto json = nlohmann::json::parse(contentOf(file.path()));
  CHECK(json["$schema"].get<std::string>().ends_with("file-format-schema.json"));
  REQUIRE(json["profiles"].size() == 4);
  CHECK(json["profiles"][0]["type"] == "sampled");
  CHECK(json["profiles"][0]["unit"] == "bytes");
  CHECK(json["profiles"][0]["name"] == "tiny, at the peak");
  CHECK(json["profiles"][0]["endValue"] == 1600);
  CHECK(shown(json, 0) ==
        std::vector<std::string>{"label: forward;label: layer 0;outer;inner \"quoted\";1000",
                                 "outer;600"});
  CHECK(shown(json, 1) == std::vector<std::string>{"outer;600", "(no call stack);70"});
  CHECK(shown(json, 3) == std::vector<std::string>{"(no call stack);5"});
  CHECK(json["shared"]["frames"][0]["line"] == 7);
}

}  // namespace
}  // namespace cistern::recording::testing
