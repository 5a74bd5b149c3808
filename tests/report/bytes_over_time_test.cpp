#include <random>

#include "interop/report/analyses.hpp"
#include "tests/report/report_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;

TEST_CASE("the time line has asked, allocated and reserved bytes, and the limit") {
  const json model = testing::modelOfText(
      "r alloc 100000 2097152 0 0 0\na 100 0 0 100000 0 0 0\na 600 0 10 100200 0 0 0\nf 0 10\n"
      "o 4194304 0 10 0 0 0 {\"limit\": 4000000}\n");
  const json& line = model["timeline"];
  CHECK(line["asked"].front() == 100);
  CHECK(line["asked"].back() == 600);
  CHECK(line["allocated"].back() == 1024);
  CHECK(line["reserved"].back() == 2097152);
  CHECK(line["limit"] == 4000000);
}

TEST_CASE("what is reserved is the device's memory, not the host's") {
  const json model = testing::modelOfText(
      "r alloc 100000 4096 0 0 0\nr map 200000 65536 0 0 0 host\na 100 0 0 200000 0 0 0\n"
      "a 100 0 0 100000 0 0 0\nr unmap 200000 65536 0 0 5 host\n");
  CHECK(model["timeline"]["reserved"].front() == 4096);
  CHECK(model["timeline"]["reserved"].back() == 4096);
}

TEST_CASE("a block takes memory until its last use ends") {
  const json model = testing::modelOfText("a 512 0 0\na 512 1 10\nf 0 10\ne 0 100\n");
  const json& allocated = model["timeline"]["allocated"];
  CHECK(allocated[allocated.size() - 2] == 1024);
}

TEST_CASE("the time line names the shortest time in which nine of ten events happen") {
  std::string text = "a 512 0 0\na 512 0 1000000\n";
  for (int i = 0; i < 18; ++i) text += "a 512 0 10\n";
  const json busy = testing::modelOfText(text)["timeline"]["busy"];
  CHECK(busy == json{1'000'000, 1'000'170});
  CHECK(testing::modelOfText("a 512 0 0\n")["timeline"]["busy"].is_null());
}

TEST_CASE("what is not known is null") {
  const json model = testing::modelOfText("a 512 0 0\na 512 0 10\n");
  CHECK(model["timeline"]["reserved"].is_null());
  CHECK(model["timeline"]["limit"].is_null());
}

std::string manyStacks() {
  testing::Script script;
  std::mt19937 random(7);
  std::vector<int> live;
  for (int i = 0; i < 3000; ++i) {
    if (random() % 2 == 0 && !live.empty()) {
      script.free(live.back());
      live.pop_back();
    } else {
      live.push_back(script.allocate(random() % 10'000, int(random() % 4), int(random() % 3)));
    }
  }
  return script.text();
}

TEST_CASE("what is stacked adds up to what is asked for") {
  const json line = testing::modelOfText(manyStacks())["timeline"];
  for (const char* split : {"pool", "stream", "label", "site"}) {
    CAPTURE(split);
    std::vector<std::uint64_t> sum(line["asked"].size());
    for (const json& row : line["stacked"][split])
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += row[1][i].get<std::uint64_t>();
    CHECK(json(sum) == line["asked"]);
  }
}

TEST_CASE("more keys than are shown become one row of the rest") {
  std::string text = "# {\"recording\": 1}\n";
  for (int i = 1; i <= 20; ++i) text += "L 0 \"label " + std::to_string(i) + "\"\n";
  for (int i = 1; i <= 20; ++i)
    text += "a " + std::to_string(1000 * i) + " 0 1 0 0 " + std::to_string(i) + " 0\n";
  const json rows = testing::modelOfText(text)["timeline"]["stacked"]["label"];
  REQUIRE(rows.size() == 15);
  CHECK(rows.front()[0] == 20);  // the largest comes first
  CHECK(rows.back()[0] == -1);
  CHECK(rows.back()[1].back() == 1000 * (1 + 2 + 3 + 4 + 5 + 6));
}

}  // namespace
}  // namespace cistern::report
