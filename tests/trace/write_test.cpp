#include "interop/trace/write.hpp"

#include "tests/support/catch.hpp"
#include "tests/trace/trace_testing.hpp"

namespace cistern::trace::testing {
namespace {

Trace roundTrip(const Trace& trace, const std::string& name) {
  const TemporaryFile file(name);
  writeTrace(trace, file.path());
  return readTrace(file.path());
}

Trace sample() {
  return parsed("# {\"workload\": \"tiny\", \"peak\": 3}\n# a note\na 100 0 0\na 50 7 9\nf 1 5\n");
}

TEST_CASE("a written trace is read back as it was, plain or gzip") {
  CHECK(roundTrip(sample(), "t.trace") == sample());
  CHECK(roundTrip(sample(), "t.trace.gz") == sample());
}

TEST_CASE("a trace of another format is read back as it was") {
  const Trace trace = readTraces(samplePath("snapshot.p4.pickle"), {}, 1).traces[0];
  CHECK(roundTrip(trace, "t.trace") == trace);
}

TEST_CASE("what a trace says of other streams' uses is read back as it was") {
  const Trace used = parsed("# {\"name\": \"x\"}\na 100 1 0\nf 0 5\na 50 0 9\ne 0 5\n");
  CHECK(roundTrip(used, "t.trace") == used);
  for (const StreamUses uses :
       {StreamUses::kNotSaid, StreamUses::kRecorded, StreamUses::kMissing}) {
    Trace trace = sample();
    trace.stream_uses = uses;
    CHECK(roundTrip(trace, "t.trace") == trace);
  }
}

TEST_CASE("names and notes survive, but for line breaks") {
  Trace trace = sample();
  trace.name = "q\"uote\\ \ttab {\"name\": \"x\"} é";
  trace.notes = {"", "  spaced ", "{\"name\": \"other\"}", "# hash", "a 1 0 0"};
  CHECK(roundTrip(trace, "t.trace") == trace);
  trace.notes = {"two\r\nlines"};
  CHECK(roundTrip(trace, "t.trace").notes == std::vector<std::string>{"two  lines"});
}

TEST_CASE("only a name that ends in .gz makes gzip") {
  const TemporaryFile plain("t.trace");
  writeTrace(sample(), plain.path());
  CHECK(TraceFile(plain.path()).rest().size() == std::filesystem::file_size(plain.path()));
  CHECK(TraceFile(plain.path()).rest().substr(0, 18) == "# {\"name\": \"tiny\"}");
}

TEST_CASE("a file that cannot be written is an error") {
  CHECK_THROWS_AS(writeTrace(sample(), "/nowhere/t.trace"), TraceError);
  if (std::filesystem::exists("/dev/full")) {
    CHECK_THROWS_AS(writeTrace(sample(), "/dev/full"), TraceError);
  }
}

}  // namespace
}  // namespace cistern::trace::testing
