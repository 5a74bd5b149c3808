#include "interop/recording/formats/write_trace.hpp"

#include "tests/recording/calls_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::calls {
namespace {

Calls roundTrip(const Recording& trace, const std::string& name) {
  const TemporaryFile file(name);
  writeTrace(trace, file.path());
  return readOne(file.path());
}

Recording sample() {
  return parsedRecording(
      "# {\"workload\": \"tiny\", \"peak\": 3}\n# a note\na 100 0 0\na 50 7 9\nf 1 5\n");
}

TEST_CASE("a written trace is read back as it was, plain or gzip") {
  CHECK(roundTrip(sample(), "t.trace") == callsOf(sample()));
  CHECK(roundTrip(sample(), "t.trace.gz") == callsOf(sample()));
}

TEST_CASE("a trace of another format is read back as it was") {
  const Recording trace = readCalls(samplePath("snapshot.p4.pickle"), {}, 1).recordings[0];
  CHECK(roundTrip(trace, "t.trace") == callsOf(trace));
}

TEST_CASE("what a trace says of other streams' uses is read back as it was") {
  const Recording used =
      parsedRecording("# {\"name\": \"x\"}\na 100 1 0\nf 0 5\na 50 0 9\ne 0 5\n");
  CHECK(roundTrip(used, "t.trace") == callsOf(used));
  for (const StreamUses uses :
       {StreamUses::kNotSaid, StreamUses::kRecorded, StreamUses::kMissing}) {
    Recording trace = sample();
    trace.stream_uses = uses;
    CHECK(roundTrip(trace, "t.trace") == callsOf(trace));
  }
}

TEST_CASE("names and notes survive, but for line breaks") {
  Recording trace = sample();
  trace.name = "q\"uote\\ \ttab {\"name\": \"x\"} é";
  trace.notes = {"", "  spaced ", "{\"name\": \"other\"}", "# hash", "a 1 0 0"};
  CHECK(roundTrip(trace, "t.trace") == callsOf(trace));
  trace.notes = {"two\r\nlines"};
  CHECK(roundTrip(trace, "t.trace").notes == std::vector<std::string>{"two  lines"});
}

TEST_CASE("only a name that ends in .gz makes gzip") {
  const TemporaryFile plain("t.trace");
  writeTrace(sample(), plain.path());
  CHECK(trace::TraceFile(plain.path()).rest().size() == std::filesystem::file_size(plain.path()));
  CHECK(trace::TraceFile(plain.path()).rest().substr(0, 18) == "# {\"name\": \"tiny\"}");
}

TEST_CASE("a file that cannot be written is an error") {
  CHECK_THROWS_AS(writeTrace(sample(), "/nowhere/t.trace"), TraceError);
  if (std::filesystem::exists("/dev/full")) {
    CHECK_THROWS_AS(writeTrace(sample(), "/dev/full"), TraceError);
  }
}

}  // namespace
}  // namespace cistern::recording::calls
