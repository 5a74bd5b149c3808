#include "tests/recording/calls_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::calls {
namespace {

using Events = std::vector<Call>;

TEST_CASE("a trace in Cistern's format is read event by event") {
  const Calls trace = parsed("# {\"workload\": \"tiny\"}\na 100 0 0\na 50 7 10\nf 0 5\na 30 0 1\n");
  CHECK(trace.events == Events{allocation(100, 0, 0), allocation(50, 1, 10), release(0, 0, 5),
                               allocation(30, 0, 1)});
  CHECK(trace.name == "tiny");
  CHECK(trace.notes == std::vector<std::string>{"{\"workload\": \"tiny\"}"});
  CHECK(trace.allocations == 3);
  CHECK(trace.streams == 2);
  CHECK(trace.peak_requested_bytes == 150);
  CHECK(trace.duration_us == 16);
}

TEST_CASE("a comment that is a JSON object names the trace, and nothing else does") {
  const auto named = [](const std::string& comment) {
    return parsed("# " + comment + "\na 1 0 0\n").name;
  };
  const std::string otherwise = named("nothing");
  CHECK(named(R"({"name":"q"})") == "q");
  CHECK(named(R"({ "peak" : 3, "name" : "q" })") == "q");
  CHECK(named(R"({"workload": "w", "name": "q"})") == "q");
  CHECK(named(R"({"name": "a\tb\u00e9"})") == "a\tb\u00e9");
  CHECK(named(R"({"a": {"name": "inner"}})") == otherwise);
  CHECK(named(R"({"name": "q"} trailing)") == otherwise);
  CHECK(named(R"({"name": 3})") == otherwise);
  CHECK(named(R"({"name": "q", "deep": )" + std::string(1 << 20, '[')) == otherwise);
}

TEST_CASE("the end of other streams' uses is an event, and no part of what the program holds") {
  const Calls trace = parsed("a 100 7 0\nf 0 5\na 60 0 2\ne 0 3\nf 1 0\n");
  CHECK(trace.events == Events{allocation(100, 1, 0), release(0, 1, 5), allocation(60, 0, 2),
                               usesEnd(0, 1, 3), release(1, 0, 0)});
  CHECK(trace.peak_requested_bytes == 100);
  CHECK(trace.duration_us == 10);
  CHECK(trace.stream_uses == StreamUses::kRecorded);
}

TEST_CASE("the header says whether a trace records the uses of other streams") {
  const auto uses = [](const std::string& comment, const std::string& events = "a 1 0 0\n") {
    return parsed("# " + comment + "\n" + events).stream_uses;
  };
  CHECK(uses(R"({"name": "x"})") == StreamUses::kNotSaid);
  CHECK(uses(R"({"name": "x", "stream_uses": "recorded"})") == StreamUses::kRecorded);
  CHECK(uses(R"({"workload": "x", "stream_uses": "missing"})") == StreamUses::kMissing);
  CHECK(uses(R"({"stream_uses": "missing"})") == StreamUses::kMissing);
  CHECK(uses(R"(  {"name": 3, "stream_uses": "missing"}  )") == StreamUses::kMissing);
  CHECK(parsed("# {\"name\": \"x\"}\n#{\"stream_uses\": \"missing\"}\na 1 0 0\n").stream_uses ==
        StreamUses::kMissing);
  CHECK(uses(R"({"name": "x", "stream_uses": "missing"})", "a 1 0 0\nf 0 0\ne 0 0\n") ==
        StreamUses::kMissing);
  CHECK(parsed("# {\"name\": \"x\", \"stream_uses\": \"recorded\"}\na 1 0 0\n").notes.empty());
}

TEST_CASE("streams are renumbered densely, and 0 stays the default") {
  const Calls trace = parsed("a 1 900 0\na 1 0 0\na 1 1000000 0\na 1 900 0\nf 2 0\n");
  std::vector<std::uint32_t> streams;
  for (const Call& event : trace.events) streams.push_back(event.stream);
  CHECK(streams == std::vector<std::uint32_t>{1, 0, 2, 1, 2});
  CHECK(trace.streams == 3);
}

TEST_CASE("blank lines, comments, Windows line ends and a missing last one are taken") {
  const Calls trace = parsed("\n#\r\n# first\r\na 1 0 0\r\n\r\n#second\nf 0 3");
  CHECK(trace.events.size() == 2);
  CHECK(trace.notes == std::vector<std::string>{"", "first", "second"});
}

TEST_CASE("sizes from zero to 2^60 are taken") {
  CHECK(parsed("a 0 0 0\na 1152921504606846976 0 0\n").peak_requested_bytes == 1ull << 60);
}

TEST_CASE("a replay passes over memory that lies in the host's") {
  const Calls trace = parsed("#\nr map 1000 4096 0 0 2 host\na 100 0 1\nf 0 5\n");
  CHECK(trace.events == Events{allocation(100, 0, 3), release(0, 0, 5)});
}

TEST_CASE("a fault in Cistern's format is named with line, column and what was expected") {
  struct Case {
    const char* content;
    const char* complaint;
  };
  const std::vector<Case> cases{
      {"#\na x 0 0", "t:2:3: expected a size in bytes, at most 2^60, found 'x'"},
      {"#\na", "t:2:2: expected a size in bytes, at most 2^60, found the end of the line"},
      {"a 1", "t:1:4: expected a stream number, at most 1000000, found the end of the line"},
      {"a  0 0", "t:1:3: expected a size in bytes, at most 2^60, found ''"},
      {"a -1 0 0", "t:1:3: expected a size in bytes, at most 2^60, found '-1'"},
      {"a 1152921504606846977 0 0",
       "t:1:3: expected a size in bytes, at most 2^60, found '1152921504606846977', which is too "
       "large"},
      {"a 1152921504606846976 0 0\na 1 0 0", "t:2:5: expected at most 2^60 bytes live at once"},
      {"a 1 1000001 0",
       "t:1:5: expected a stream number, at most 1000000, found '1000001', which is too large"},
      {"a 1 0 soon", "t:1:7: expected a time in microseconds, found 'soon'"},
      {"a 1 0 1152921504606846977", "t:1:7: expected a trace shorter than 2^60 microseconds"},
      {"a 1 0 0 0", "t:1:10: expected the number of a stack, found the end of the line"},
      {"a 1 0 0 0 0 0 0 0", "t:1:16: expected the end of the line, found ' 0'"},
      {"a 1 0 0 ", "t:1:9: expected an address in hexadecimal, found the end of the line"},
      {"a 1 0 0\nf 1 0",
       "t:2:3: expected the number of an allocation above, of which there is 1, found 1"},
      {"a 1 0 0\nf 0 0\nf 0 0", "t:3:3: allocation 0 is freed twice"},
      {"a 1 0 0\ne 0 0",
       "t:2:3: the uses of allocation 0 end before its free; expected its 'f' earlier"},
      {"a 1 0 0\nf 0 0\ne 0 0\ne 0 0", "t:4:3: the uses of allocation 0 end twice"},
      {"a 1 0 0\nf 0 0\ne 0 0\nf 0 0", "t:4:3: allocation 0 is freed twice"},
      {"a 1 0 0\nf 0 0\ne 1 0",
       "t:3:3: expected the number of an allocation above, of which there is 1, found 1"},
      {"e 0 0", "t:1:3: expected the number of an allocation above, of which there are 0, found 0"},
      {"a 1 0 0\nf 0 0\ne x 0", "t:3:3: expected the number of an allocation, found 'x'"},
      {"# {\"stream_uses\": \"Missing\"}\na 1 0 0\n",
       "t:1:1: expected \"stream_uses\" to be \"recorded\" or \"missing\""},
      {"a 1 0 0\nf 0 0\ne 0", "t:3:4: expected a time in microseconds, found the end of the line"},
      {"a 1 0 0\nf 0 0\ne 0 0 0", "t:3:6: expected the end of the line, found ' 0'"},
      {"a 1 0 0\nfree 0 0", "t:2:1: expected an event such as 'a' or 'f', or '#', found 'free'"},
      {"#\n\x01\xff", "t:2:1: expected an event such as 'a' or 'f', or '#', found '\\x01\\xff'"},
  };
  for (const Case& c : cases) {
    CHECK(complaint(c.content) == c.complaint);
  }
}

TEST_CASE("an error carries its file and place") {
  try {
    (void)parseCalls("a 1 0 0\na 1 0 x\n");
    FAIL("no error");
  } catch (const TraceError& error) {
    CHECK(error.file() == "t");
    CHECK(error.place().line == 2);
    CHECK(error.place().column == 7);
  }
}

}  // namespace
}  // namespace cistern::recording::calls
