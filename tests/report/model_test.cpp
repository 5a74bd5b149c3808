#include <map>

#include "interop/report/names.hpp"
#include "tests/report/report_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::report {
namespace {

using nlohmann::json;
using testing::Script;

TEST_CASE("the model says what was recorded, and by which names") {
  const json model = testing::modelOfText(
      "# {\"name\": \"app\", \"recording\": 1, \"device\": \"cuda:0\"}\n"
      "N \"step\" \"train.py\" 41\nS 0 1\nL 0 \"step\"\nL 1 \"forward\"\nP 0 4\n"
      "a 100 0 1 1000 1 2 1\na 100 7 1 2000 1 2 1\nt 5 \"step 2\"\nf 0 10\n");
  CHECK(model["name"] == "app");
  CHECK(model["device"] == "cuda:0");
  CHECK(model["source"] == "trace");
  CHECK(model["events"] == 4);
  CHECK(model["allocations"] == 2);
  CHECK(model["duration_us"] == 16);
  CHECK(model["streams"] == json{"the default stream", "stream 7"});
  CHECK(model["pools"] == json{"the default pool", "pool 0:4"});
  CHECK(model["labels"] == json::array({{"", 0}, {"step", 0}, {"forward", 1}}));
  CHECK(model["frames"] == json::array({{"step", "train.py", 41}}));
  CHECK(model["stacks"] == json{{0, 0}, {0, 0}});
  CHECK(model["marks"] == json::array({{7, 2, "step 2"}}));
}

TEST_CASE("the flame graph has bytes by stack at the peak, at the end and of what lives longest") {
  Script script;
  const int kept = script.allocate(100, 3);
  const int large = script.allocate(900, 2);
  script.free(large);
  for (int i = 0; i < 10; ++i) script.free(script.allocate(1, 1));
  const json flame = testing::modelOfText(script.text())["flame"];
  CHECK(kept == 0);
  CHECK(flame["peak"] == json{{2, 900, 1}, {3, 100, 1}});
  CHECK(flame["end"] == json::array({{3, 100, 1}}));
  CHECK(flame["longest"] == json::array({{3, 100, 1, 22}}));
}

TEST_CASE("sizes and lifetimes are counted by powers of two") {
  Script script;
  const int first = script.allocate(1000);
  script.allocate(0);
  script.free(first);
  const json model = testing::modelOfText(script.text());
  CHECK(model["sizes"] == json{{0, 1, 0}, {9, 1, 1000}});
  CHECK(model["lifetimes"] == json::array({{1, 1, 1000}}));
  CHECK(model["size_life"] == json::array({{9, 1, 1}}));
}

TEST_CASE("a label's peak counts the labels within it") {
  Script script;
  const int outer = script.allocate(100, 0, 1);
  const int inner = script.allocate(50, 0, 2);
  script.free(outer);
  script.free(inner);
  script.allocate(60, 0, 2);
  const json peaks = testing::modelOfText(script.text())["labels_peak"];
  CHECK(peaks == json{{{"label", 1}, {"peak", 150}, {"at_us", 2}, {"end", 60}},
                      {{"label", 2}, {"peak", 60}, {"at_us", 5}, {"end", 60}}});
}

TEST_CASE("device calls are counted with their bytes") {
  const json model = testing::modelOfText(
      "r alloc 1000 4096 0 0 0\nr map 9000 8192 0 0 0\nr map 20000 8192 0 0 0\na 1 0 0 0 0 0 0\n"
      "r free 1000 4096 0 0 0\n");
  CHECK(model["calls"] ==
        json{{"segment_alloc", 1, 4096}, {"segment_free", 1, 4096}, {"map", 2, 16384}});
}

/// Sixteen events, 10 µs apart: allocations, but for these lines.
std::string sixteen(const std::map<int, std::string>& lines) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    const auto line = lines.find(i);
    text += (line == lines.end() ? "a 1 0" : line->second) + " 10" +
            (line == lines.end() ? " 0 0 0 0\n" : "\n");
  }
  return text;
}

TEST_CASE("a program rests after the last call that made, moved or gave back memory") {
  const json rest = testing::modelOfText(sixteen({{0, "r alloc 1000 4096 0 0"},
                                                  {4, "r map 9000 8192 0 0"},
                                                  {9, "r unmap 9000 8192 0 0"}}))["rest"];
  CHECK(rest == json{{"last_us", 100},
                     {"last_event", 9},
                     {"later_calls", 1},
                     {"later_us", 80},
                     {"rested", true}});
}

TEST_CASE("a program that makes pages up to the end has not come to rest") {
  const json rest = testing::modelOfText(sixteen({{3, "r map 9000 8192 0 0"},
                                                  {8, "r map 1000 8192 0 0"},
                                                  {15, "r map 5000 4096 0 0"}}))["rest"];
  CHECK(rest["rested"] == false);
  CHECK((rest["last_event"] == 15 && rest["later_calls"] == 2 && rest["later_us"] == 80));
}

TEST_CASE("pages that stay mapped, and what was there before, are no calls") {
  std::string text = sixteen({{0, "r map 9000 8192 0 0"}});
  for (const char* kind : {"unmap", "map"})
    text += std::string("r ") + kind + " 9000 8192 0 0 1 stays\n";
  const json model = testing::modelOfText("# {\"recording\": 1, \"first_recorded\": 1}\n" + text);
  CHECK(model["calls"].empty());
  CHECK((model["rest"]["last_us"].is_null() && model["rest"]["last_event"].is_null()));
  CHECK((model["rest"]["rested"] == true && model["rest"]["later_calls"] == 0));
}

TEST_CASE("without memory events nothing is said of rest") {
  CHECK(testing::modelOfText("# {}\na 1 0 0\n")["rest"].is_null());
}

TEST_CASE("a note says how much lay in the host's memory at most") {
  const std::string header = "# {\"recording\": 1}\n";
  const std::string device = "r map 1000 4096 0 0 0\n", block = "a 512 0 0 2000 0 0 0\n";
  const std::string host = "r map 2000 1024 0 0 1 host\nr map 3000 1024 0 0 1 host\n";
  const std::string gone = "r unmap 2000 1024 0 0 1 host\nr map 4000 512 0 0 1 host\n";
  CHECK(testing::modelOfText(header + device + block)["notes"].empty());
  const json model = testing::modelOfText(header + device + host + block + gone);
  CHECK(model["notes"] ==
        json::array({"2.00 KiB lay in the host's memory at most, where kernels are slower. The "
                     "device's reserved memory is drawn without it."}));
}

TEST_CASE("notes are for people: the comment that names a recording is none") {
  const json model = testing::modelOfText("# {\"name\": \"x\"}\n# Recorded on Monday\na 1 0 1\n");
  CHECK(model["notes"] == json::array({"Recorded on Monday"}));
}

TEST_CASE("a moment knows its place in its window") {
  const json model = testing::modelOfText("a 100 0 1 1000 0 0 0\na 200 0 1 2000 0 0 0\nf 0 1\n");
  CHECK(model["windows"].size() == 1);
  CHECK(model["moments"][0]["window"] == 0);
  CHECK(model["moments"][0]["at"] == 2);
  CHECK(model["moments"][1]["window"] == 0);  // the end has room, too
  CHECK(model["moments"][1]["at"] == 3);
}

TEST_CASE("windows can be left out") {
  const Subject subject = testing::subjectOf("a 100 0 1 1000 0 0 0\n");
  CHECK(modelOf(std::span(&subject, 1), {})["recordings"][0]["windows"].empty());
}

TEST_CASE("two recordings are compared by what their stacks are called") {
  Script before, after;
  before.allocate(100, 2, 1);
  before.allocate(500, 3, 1);
  after.allocate(1, 1);
  after.allocate(400, 2, 1);
  after.allocate(300, 2, 1);
  std::string moved = after.text();
  moved.replace(moved.find("\"train.py\" 20"), 13, "\"train.py\" 25");  // a line was added above
  const Subject subjects[] = {testing::subjectOf(before.text()), testing::subjectOf(moved)};
  const json model = modelOf(subjects, {"Cistern", "cistern report", true});
  const json& compared = model["comparison"];
  CHECK(compared["before"] == 0);
  CHECK(compared["after"] == 1);
  CHECK(compared["peak"] == json{600, 701});
  CHECK(compared["grew"] == json{{2, 2, "step", 100, 700, 1, 2}, {-1, 1, "", 0, 1, 0, 1}});
  CHECK(compared["went"] == json::array({{3, -1, "step", 500, 0, 1, 0}}));
}

TEST_CASE("one recording is not compared") {
  const Subject subject = testing::subjectOf("a 100 0 1\n");
  CHECK(modelOf(std::span(&subject, 1), {"Cistern", "c", false})["comparison"].is_null());
}

TEST_CASE("the site of a stack is its innermost frame that has a line") {
  const Subject subject = testing::subjectOf(
      "N \"main\" \"/app/src/train.py\" 7\nN \"malloc\" \"\" 0\nS 0 1\nS 1 2\nS 0 2\n"
      "a 1 0 1 0 2 0 0\n");
  CHECK(siteOf(subject.recording, 2) == "train.py:7 in main");
  CHECK(siteOf(subject.recording, 3) == "malloc");
  CHECK(siteOf(subject.recording, 0) == "unknown code");
}

TEST_CASE("the site of a stack is the program's own line, if it has one") {
  const Subject subject = testing::subjectOf(
      "N \"step\" \"train.py\" 7\nN \"forward\" \"/env/site-packages/torch/linear.py\" 134\n"
      "S 0 1\nS 1 2\nS 0 2\na 1 0 1 0 2 0 0\n");
  CHECK(siteOf(subject.recording, 2) == "train.py:7 in step");
  CHECK(siteOf(subject.recording, 3) == "linear.py:134 in forward");
}

}  // namespace
}  // namespace cistern::report
