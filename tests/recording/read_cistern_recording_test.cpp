#include <fstream>

#include "tests/recording/calls_testing.hpp"
#include "tests/recording/recording_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::testing {
namespace {

constexpr const char* kWhole =
    "# {\"name\": \"tiny\", \"recording\": 1, \"device\": \"cuda:0\", \"first_recorded\": 2, "
    "\"dump\": true, \"stream_names\": {\"1\": \"0x7f01\"}}\n"
    "# a note\n"
    "N \"train\" \"train.py\" 12\n"
    "N \"a \\\"quoted\\\" name\" \"\" 0\n"
    "S 0 1\n"
    "S 1 2\n"
    "L 0 \"forward\"\n"
    "L 1 \"layer 0\"\n"
    "P 0 7\n"
    "r alloc 7f0000 2097152 0 0 0\n"
    "a 1000 0 0 7f0000 2 2 1\n"
    "a 512 1 10 7f0400 0 0 0\n"
    "t 5 \"step 1\"\n"
    "f 0 7\n"
    "e 0 3\n"
    "r unmap 7f0000 4096 1 1 2\n"
    "o 4096 0 1 1 1 0 {\"requested\": 4096, \"limit\": 2097152, \"device_free\": 12, \"unused\": "
    "[{\"why\": \"too_small\", \"bytes\": 1000, \"largest\": 600}], \"advice\": \"less\"}\n";

TEST_CASE("a recording keeps what each of its lines says") {
  const Recording r = parsed(kWhole);
  CHECK(r.name == "tiny");
  CHECK(r.device == "cuda:0");
  CHECK(r.source == Source::kDump);
  CHECK(r.first_recorded == 2);
  CHECK(r.notes == std::vector<std::string>{"a note"});
  CHECK(r.streams == std::vector<std::uint64_t>{0, 0x7f01});
  REQUIRE(r.frames.size() == 2);
  CHECK(r.frames[0].file == "train.py");
  CHECK(r.frames[0].line == 12);
  CHECK(r.frames[1].function == "a \"quoted\" name");
  REQUIRE(r.stacks.size() == 3);
  CHECK(r.stacks[2].parent == 1);
  CHECK(r.stacks[2].frame == 1);
  REQUIRE(r.labels.size() == 3);
  CHECK(r.labels[2].parent == 1);
  CHECK(r.labels[2].name == "layer 0");
  REQUIRE(r.pools.size() == 2);
  CHECK(r.pools[1].uid == 7);
  CHECK(r.marks == std::vector<std::string>{"step 1"});
  CHECK(r.has_times);
  CHECK(r.has_addresses);
  CHECK(r.has_reserved);
}

TEST_CASE("a recording keeps its events in order, each with its time and place") {
  const Recording r = parsed(kWhole);
  REQUIRE(r.events.size() == 8);
  CHECK(r.events[0].kind == EventKind::kReserve);
  CHECK(r.events[0].value == 2'097'152);
  const Event& made = r.events[1];
  CHECK((r.placeOf(made).address == 0x7f0000 && r.placeOf(made).stack == 2 &&
         r.placeOf(made).label == 2 && r.placeOf(made).pool == 1));
  CHECK(r.events[2].stream == 1);
  CHECK(r.events[3].kind == EventKind::kMark);
  CHECK(r.events[3].time_us == 15);
  const Event& freed = r.events[4];
  CHECK((freed.value == 0 && r.placeOf(freed).address == 0x7f0000 && r.placeOf(freed).stack == 2 &&
         r.placeOf(freed).pool == 1));
  CHECK(r.events[5].kind == EventKind::kUsesEnd);
  CHECK(r.events[6].kind == EventKind::kUnmap);
  CHECK(r.events[7].kind == EventKind::kFailed);
  CHECK(r.events[7].time_us == 28);
  REQUIRE(r.failures.size() == 1);
  const Failure& failure = r.failures[0];
  CHECK((failure.requested == 4096 && failure.limit == 2'097'152 && failure.device_free == 12));
  CHECK(failure.advice == "less");
  REQUIRE(failure.unused.size() == 1);
  CHECK((failure.unused[0].why == "too_small" && failure.unused[0].largest == 600));
}

TEST_CASE("a recording says which memory lies in the host's") {
  const Recording r = parsed(
      "#\nr map 1000 4096 0 0 0\nr map 2000 512 0 0 3 host\na 512 0 0 2000 0 0 0\n"
      "r unmap 2000 512 0 0 4 host\n");
  REQUIRE(r.events.size() == 4);
  CHECK(r.events[0].location == Location::kDevice);
  CHECK(r.events[1].location == Location::kHost);
  CHECK((r.placeOf(r.events[1]).address == 0x2000 && r.events[1].time_us == 3));
  CHECK(r.events[3].location == Location::kHost);
  CHECK(complaint("#\nr map 1000 4096 0 0 0 disk\na 1 0 0\n") ==
        "t:2:23: expected 'host', 'stays', or the end of the line, found 'disk'");
  CHECK(complaint("#\nr map 1000 4096 0 0 0 host 1\na 1 0 0\n") ==
        "t:2:28: expected 'host', 'stays', or the end of the line, found '1'");
}

TEST_CASE("a recording says which changes of pages took no device call") {
  const Recording r = parsed(
      "#\nr map 1000 4096 0 0 0\nr unmap 1000 4096 0 0 3 stays\nr map 1000 4096 0 0 0 host stays\n"
      "a 512 0 0 2000 0 0 0\n");
  REQUIRE(r.events.size() == 4);
  CHECK_FALSE(r.events[0].stays_mapped);
  CHECK((r.events[1].stays_mapped && r.events[1].location == Location::kDevice));
  CHECK((r.events[2].stays_mapped && r.events[2].location == Location::kHost));
  CHECK(complaint("#\nr alloc 1000 4096 0 0 0 stays\na 1 0 0\n") ==
        "t:2:25: expected 'host', 'stays', or the end of the line, found 'stays'");
}

TEST_CASE("the calls of a recording are those that a replay reads from the same file") {
  const calls::Calls replayed = calls::parsed(kWhole);
  CHECK(calls::callsOf(parsed(kWhole)) == replayed);
  CHECK(replayed.notes == std::vector<std::string>{"a note"});
  CHECK(replayed.events[2].delta_us == 12);  // the mark's time and its own
}

TEST_CASE("a later comment may add to the header") {
  const Recording r = parsed(
      "# {\"name\": \"x\", \"recording\": 1, \"device\": \"gpu\", \"first_recorded\": 1}\na 1 1 0\n"
      "# {\"recording\": 1, \"stream_names\": {\"1\": \"0x7f\"}}\na 1 0 0\n");
  CHECK(r.name == "x");
  CHECK(r.device == "gpu");
  CHECK(r.first_recorded == 1);
  CHECK(r.streams == std::vector<std::uint64_t>{0, 0x7f});
  CHECK(r.notes.empty());
}

TEST_CASE("the recording in the docs is read") {
  std::ifstream docs(std::string(CISTERN_SOURCE_DIR) + "/docs/traces.md");
  std::string content;
  bool within = false;
  for (std::string line; std::getline(docs, line);) {
    if (line.starts_with("## ")) within = line == "## Recordings";
    if (within && line.starts_with("    ")) content += line.substr(4) + "\n";
  }
  const Recording r = parsed(content);
  CHECK(r.events.size() == 5);
  CHECK(r.failures.at(0).limit == 25'769'803'776);
  CHECK(r.first_recorded == 2);
}

TEST_CASE("a plain trace is a recording that knows neither stacks nor addresses") {
  const Recording r = parsed("a 100 0 0\na 50 7 10\nf 0 5\n");
  CHECK(r.source == Source::kTrace);
  CHECK_FALSE(r.has_addresses);
  CHECK_FALSE(r.has_reserved);
  CHECK(r.streams == std::vector<std::uint64_t>{0, 7});
  CHECK(r.events[2].time_us == 15);
}

TEST_CASE("a recording without times counts its events instead") {
  const Recording r = parsed("a 100 0 0\na 50 7 0\nf 0 0\n");
  CHECK_FALSE(r.has_times);
  CHECK(r.events[2].time_us == 2);
  CHECK(calls::callsOf(r).duration_us == 0);
}

TEST_CASE("bytes of a name that are not UTF-8 are replaced") {
  CHECK(parsed("#\nL 0 \"a\xff\"\na 1 0 0\n").labels[1].name == "a\xef\xbf\xbd");
}

TEST_CASE("a fault in a recording is named with line, column and what was expected") {
  const auto behind = [](const std::string& line) { return complaint("#\n" + line); };
  CHECK(behind("S 0 1") ==
        "t:2:5: expected the number of a frame above, of which there are 0, found 1");
  CHECK(behind("N \"f\" \"g\" 1\nS 1 1") ==
        "t:3:5: expected the number of a stack above, at most 0, found 1");
  CHECK(behind("N \"f\" \"g\" 1\nS 0 0") ==
        "t:3:5: expected the number of a frame, which counts from 1, found '0'");
  CHECK(behind("a 1 0 0 12 1 0 0") ==
        "t:2:16: expected the number of a stack above, at most 0, found 1");
  CHECK(behind("a 1 0 0 12 0 0") ==
        "t:2:15: expected the number of a pool, found the end of the line");
  CHECK(behind("a 1 0 0 0x12 0 0 0") == "t:2:9: expected an address in hexadecimal, found '0x12'");
  CHECK(behind("r take 12 1 0 0 0") == "t:2:3: expected alloc, free, map or unmap, found 'take'");
  CHECK(behind("t 1 step") == "t:2:5: expected a JSON string, found 'step'");
  CHECK(behind("t 1 \"step\"x") == "t:2:5: expected a JSON string, found '\"step\"x'");
  CHECK(behind("t 1 \"\\q\"") == "t:2:5: expected a JSON string, found '\"\\q\"'");
  CHECK(behind("o 1 0 0 0 0 0 [1]") == "t:2:15: expected a JSON object, found '[1]'");
  CHECK(behind("o 1 0 0 0 0 0 {\"limit\": -1}") ==
        "t:2:15: expected \"limit\" of a failed request to be a number of bytes");
  CHECK(complaint("# {\"recording\": 2}\na 1 0 0") ==
        "t:1:1: expected \"recording\" to be 1, the version that this release reads");
  CHECK(complaint("# {\"recording\": 1, \"first_recorded\": 2}\na 1 0 0") ==
        "t:2:7: \"first_recorded\" is 2, and the file has 1 events");
}

}  // namespace
}  // namespace cistern::recording::testing
