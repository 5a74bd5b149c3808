#include "interop/report/moments.hpp"

#include <algorithm>

#include "tests/report/report_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;

std::vector<std::string> kindsOf(const json& model) {
  std::vector<std::string> kinds;
  for (const json& moment : model["moments"]) kinds.push_back(moment["kind"]);
  return kinds;
}

const json& momentOf(const json& model, const std::string& kind) {
  return *std::find_if(model["moments"].begin(), model["moments"].end(),
                       [&](const json& moment) { return moment["kind"] == kind; });
}

TEST_CASE("the peak, failures, named moments and the end come in order of time") {
  Subject subject =
      testing::subjectOf("a 100 0 1\na 200 0 1\nf 1 1\no 999 0 1 0 0 0 {}\na 1 0 1\n");
  subject.moments.push_back({"step 1", 1});
  const json model = testing::modelOfOne(subject);
  CHECK(kindsOf(model) == std::vector<std::string>{"mark", "peak", "failure", "end"});
  CHECK(momentOf(model, "peak")["asked"] == 300);
  CHECK(momentOf(model, "peak")["event"] == 2);
  CHECK(momentOf(model, "mark")["title"] == "step 1");
  CHECK(momentOf(model, "mark")["asked"] == 100);
  CHECK(momentOf(model, "failure")["asked"] == 100);
  CHECK(momentOf(model, "failure")["request"]["bytes"] == 999);
  CHECK(model["failed"] == 1);
}

TEST_CASE("a recording that begins with blocks has a moment at its beginning") {
  const json model = testing::modelOfText(
      "# {\"recording\": 1, \"first_recorded\": 2}\na 100 0 0\na 200 0 0\na 5 0 7\n");
  const json start = momentOf(model, "start");
  CHECK(start["asked"] == 300);
  CHECK(start["event"] == 2);
}

TEST_CASE("of very many failures the first and the last are told, and a note says so") {
  std::string text = "a 100 0 1\n";
  for (int i = 0; i < 40; ++i) text += "o " + std::to_string(1000 + i) + " 0 1 0 0 0 {}\n";
  const json model = testing::modelOfText(text);
  const std::vector<std::string> kinds = kindsOf(model);
  CHECK(std::count(kinds.begin(), kinds.end(), "failure") == 16);
  CHECK(model["failed"] == 40);
  CHECK(model["notes"].back() == "40 requests failed. The first 8 and the last 8 are shown.");
  std::vector<int> sizes;
  for (const json& moment : model["moments"])
    if (moment["kind"] == "failure") sizes.push_back(moment["request"]["bytes"]);
  CHECK(sizes[7] == 1007);
  CHECK(sizes[8] == 1032);
}

TEST_CASE("holders are grouped by stack, label, pool and stream, largest first") {
  testing::Script script;
  script.allocate(100, 2, 1);
  script.allocate(150, 2, 1);
  script.allocate(200, 2, 2);
  script.free(script.allocate(999, 3, 1));
  const json model = testing::modelOfText(script.text());
  const json& end = model["moments"].back();
  CHECK(end["holders"] == json{{2, 1, 0, 0, 2, 250, 150}, {2, 2, 0, 0, 1, 200, 200}});
}

TEST_CASE("more holders than are listed become one row") {
  std::string text = "# {\"recording\": 1}\nN \"f\" \"f.py\" 1\n";
  for (int i = 0; i < 205; ++i) text += "S 0 1\n";
  for (int i = 1; i <= 205; ++i)
    text += "a " + std::to_string(1000 + i) + " 0 1 0 " + std::to_string(i) + " 0 0\n";
  const json holders = testing::modelOfText(text)["moments"].back()["holders"];
  REQUIRE(holders.size() == 201);
  CHECK(holders.back() == json{-1, 0, 0, 0, 5, 1001 + 1002 + 1003 + 1004 + 1005, 1005});
}

TEST_CASE("what the recorder knew of a failure stays") {
  const json model = testing::modelOfText(
      "a 100 0 1\no 5000 0 1 0 0 0 {\"requested\": 5000, \"limit\": 6000, \"reserved\": 4096, "
      "\"allocated\": 2048, \"unused\": [{\"why\": \"held_in_place\", \"bytes\": 2048, "
      "\"largest\": "
      "1024}], \"advice\": \"Buy more.\", \"device_error\": \"no\"}\n");
  const json failure = momentOf(model, "failure");
  CHECK(failure["limit"] == 6000);
  CHECK(failure["reserved"] == 4096);
  CHECK(failure["allocated"] == 2048);
  CHECK(failure["advice"].front() == "Buy more.");
  CHECK(failure["device_error"] == "no");
  CHECK(failure["unused"].size() == 1);
  CHECK(failure["unused"][0]["why"] == "held_in_place");
}

TEST_CASE("advice names a C++ function without its parameters") {
  const json model = testing::modelOfText(
      "N \"(anonymous namespace)::keep(unsigned long)\" \"a.cpp\" 9\nS 0 1\n"
      "a 900000 0 1 0 1 0 0\no 5000 0 1 0 0 0 {}\n");
  const std::string advice = momentOf(model, "failure")["advice"].dump();
  CHECK(advice.find("a.cpp:9 in keep first") != std::string::npos);
}

TEST_CASE("advice for a failure begins with the leak that led to it") {
  testing::Script script;
  for (int step = 0; step < 40; ++step) {
    script.free(script.allocate(5000, 2));
    script.allocate(1000, 3);
  }
  const json model = testing::modelOfText(script.text() + "o 9000 0 1 2 0 0 {}\n");
  CHECK(momentOf(model, "failure")["advice"][0] ==
        "train.py:41 in keep keeps ever more memory: it holds 39.06 KiB in 40 blocks.");
}

TEST_CASE("a failure has its own time, however long nothing happened before it") {
  const json model = testing::modelOfText(
      "# {\"recording\": 1}\na 100 0 1 1000 0 0 0\no 5000 0 20000000 0 0 0\nf 0 5\n");
  CHECK(momentOf(model, "failure")["at_us"] == 20'000'001);
}

}  // namespace
}  // namespace cistern::report
