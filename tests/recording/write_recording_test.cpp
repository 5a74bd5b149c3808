#include "interop/recording/formats/write_recording.hpp"

#include "tests/recording/formats_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::testing {
namespace {

TEST_CASE("a recording that is written and read is the same") {
  const test::TemporaryFile first("first.trace"), second("second.trace.gz");
  const Recording before = sampleRecording();
  writeRecording(before, first.path());
  const Recording after = readRecordings(first.path()).at(0);
  audit(after);
  CHECK(after.name == "tiny");
  CHECK(after.device == "cuda:1");
  CHECK(after.first_recorded == 2);
  CHECK(after.notes == before.notes);
  REQUIRE(after.events.size() == before.events.size());
  for (std::size_t i = 0; i < after.events.size(); ++i)
    CHECK(after.events[i].location == before.events[i].location);
  CHECK(after.failures.at(0).unused.at(0).largest == 600);
  CHECK(after.streams == before.streams);
  writeRecording(after, second.path());
  const test::TemporaryFile third("third.trace");
  writeRecording(readRecordings(second.path()).at(0), third.path());
  CHECK(contentOf(third.path()) == contentOf(first.path()));
}

}  // namespace
}  // namespace cistern::recording::testing
