#include "tests/recording/recording_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::testing {
namespace {

TEST_CASE("an RMM log gives addresses, streams and failed requests") {
  const Recording r = parsed(
      "Thread,Time,Action,Pointer,Size,Stream\n"
      "1,15:00:00.000100,allocate,0x7f00,1024,0x0\n"
      "1,15:00:00.000150,allocate failure,0x0,9999,0x5\n"
      "1,15:00:00.000200,free,0x7f00,1024,0x0\n");
  CHECK(r.source == Source::kRmm);
  REQUIRE(r.events.size() == 3);
  CHECK((r.placeOf(r.events[0]).address == 0x7f00 && r.events[0].value == 1024));
  CHECK((r.events[1].kind == EventKind::kFailed && r.events[1].value == 9999));
  CHECK((r.events[1].time_us == 50 && r.streams[r.events[1].stream] == 5));
  CHECK((r.events[2].kind == EventKind::kFree && r.events[2].time_us == 100));
  CHECK(r.has_addresses);
  CHECK(r.failures.at(0).requested == 9999);
}

TEST_CASE("an RMM log's stream 0x2 is a stream of each thread in a report, too") {
  const Recording r = parsed(
      "Thread,Time,Action,Pointer,Size,Stream\n"
      "1,15:00:00.0,allocate,0x10,8,0x2\n2,15:00:00.0,allocate,0x20,8,0x2\n");
  CHECK(r.streams == std::vector<std::uint64_t>{0, 2, 0x1'0000'0002});
  CHECK(r.notes.size() == 1);
}

TEST_CASE("an RMM log of failed requests alone is a recording") {
  const Recording r =
      parsed("Thread,Time,Action,Pointer,Size,Stream\n1,15:00:00.0,allocate failure,0x0,9,0x0\n");
  CHECK(r.events.size() == 1);
}

}  // namespace
}  // namespace cistern::recording::testing
