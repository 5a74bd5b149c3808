#include "tests/recording/calls_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::calls {
namespace {

using Events = std::vector<Call>;

const std::string kHeader = "Thread,Time,Action,Pointer,Size,Stream\n";

// A log of one call with this time, pointer, size and stream.
std::string oneCall(const std::string& rest) { return kHeader + "7," + rest + "\n"; }

TEST_CASE("an RMM log is read call by call") {
  const Calls trace = parsed(kHeader +
                             "4711,15:23:45.000100,allocate,0x7f0000000000,1024,0x0\n"
                             "4711,15:23:45.000350,allocate,0x7f0000000400,50,0x55aa00\n"
                             "4712,15:23:46.000350,allocate failure,(nil),99999999999,0x0\n"
                             "4712,15:23:46.000400,free,0x7f0000000000,1024,0x0\n"
                             "4712,15:23:46.000400,allocate,7f0000000000,30,1\n");
  CHECK(trace.events == Events{allocation(1024, 0, 0), allocation(50, 1, 250),
                               release(0, 0, 1'000'050), allocation(30, 0, 0)});
  CHECK(trace.peak_requested_bytes == 1074);
}

TEST_CASE("stream 0x2 of an RMM log is another stream in each thread") {
  const Calls trace = parsed(kHeader +
                             "7,00:00:00,allocate,0x10,1,0x2\n8,00:00:00,allocate,0x20,1,0x2\n"
                             "7,00:00:00,allocate,0x30,1,0x2\n8,00:00:00,free,0x20,1,0x2\n"
                             "8,00:00:00,allocate,0x40,1,0x55aa00\n");
  CHECK(trace.events == Events{allocation(1, 1, 0), allocation(1, 2, 0), allocation(1, 1, 0),
                               release(1, 2, 0), allocation(1, 3, 0)});
  CHECK(trace.stream_names == std::vector<std::uint64_t>{0, 2, 0x1'0000'0002, 0x55aa00});
  REQUIRE(trace.notes.size() == 1);
  CHECK(trace.notes[0].find("counts as 2 streams") != std::string::npos);
  CHECK(parsed(oneCall("00:00:00,allocate,0x10,1,0x2")).notes.empty());
}

TEST_CASE("an RMM log may start late, repeat its header, and end its lines as Windows does") {
  const Calls trace = parsed(
      "loading\r\nThread,Time,Action,Pointer,Size,Stream\r\n\r\n"
      "1,00:00:00,allocate,0x10,8,0\r\n" +
      kHeader + "1,00:00:02,free,0x10,8,0\r\n");
  CHECK(trace.events == Events{allocation(8, 0, 0), release(0, 0, 2'000'000)});
}

TEST_CASE("RMM times may use either separator, run over midnight, and go a little back") {
  const Calls trace = parsed(kHeader +
                             "1,23:59:59:5,allocate,0x10,1,0\n"
                             "1,23:59:59.400000,allocate,0x20,1,0\n"
                             "1,23:59:59.500007,allocate,0x30,1,0\n"
                             "1,00:00:01.0000009,allocate,0x40,1,0\n");
  CHECK(trace.events == Events{allocation(1, 0, 0), allocation(1, 0, 0), allocation(1, 0, 7),
                               allocation(1, 0, 1'499'993)});
}

TEST_CASE("a free takes the latest live allocation at its pointer") {
  const Calls trace = parsed(kHeader +
                             "1,00:00:00,allocate,0x0,0,0\n"
                             "1,00:00:00,allocate,0x0,0,0\n"
                             "1,00:00:00,free,0x0,0,0\n"
                             "1,00:00:00,free,0x0,0,0\n");
  CHECK(trace.events ==
        Events{allocation(0, 0, 0), allocation(0, 0, 0), release(1, 0, 0), release(0, 0, 0)});
}

TEST_CASE("an allocation where another lives is refused with the lines of both") {
  CHECK(complaint(kHeader + "1,00:00:00,allocate,0x10,8,0\n1,00:00:00,allocate,0x20,8,0\n" +
                  "1,00:00:01,allocate,0x10,8,0\n") ==
        "t:4:28: address 0x10 is allocated while the allocation of line 2 lives there");
  CHECK(complaint(kHeader + "1,00:00:00,allocate,0x10,8,0\n1,00:00:00,free,0x10,8,0\n" +
                  "1,00:00:01,allocate,0x10,8,0\n") == "");
}

TEST_CASE("a column that is not RMM's, or not in its place, is named") {
  const std::string expected = "; expected Thread,Time,Action,Pointer,Size,Stream";
  const std::string call = "\n1,00:00:00,allocate,0x10,8,0\n";
  CHECK(complaint("Thread,Time,Action,Pointer,Size,Stream,Device" + call) ==
        "t:1:40: unknown column 'Device'" + expected);
  CHECK(complaint("Thread,Time,Action,Address,Size,Stream" + call) ==
        "t:1:20: unknown column 'Address'" + expected);
  CHECK(complaint("started\nThread,Time,Action,Size,Pointer,Stream" + call) ==
        "t:2:20: misplaced column 'Size'" + expected);
  CHECK(complaint("Thread,Time,Action,Pointer,Size" + call) ==
        "t:1:32: unknown column ''" + expected);
  CHECK(complaint(kHeader + "Thread,Time,Action,Pointer,Size,Stream,Device" + call) ==
        "t:2:40: unknown column 'Device'" + expected);
}

TEST_CASE("freeing null without an allocation there means nothing") {
  const Calls trace = parsed(kHeader + "1,00:00:00,free,0x0,0,0\n1,00:00:05,allocate,0x10,8,0\n" +
                             "1,00:00:06,free,(nil),0,0\n1,00:00:07,free,0x10,8,0\n");
  CHECK(trace.events == Events{allocation(8, 0, 0), release(0, 0, 2'000'000)});
}

TEST_CASE("a fault in an RMM log is named with line, column and what was expected") {
  const std::string time = "15:23:45.5,";
  CHECK(complaint(oneCall("noon,allocate,0x10,1,0")) ==
        "t:2:3: expected a time of day as 15:23:45.123456, found 'noon'");
  for (const char* bad : {"24:00:00", "00:60:00", "00:00:61", "00-00-00", "00:00:00.", "00:00:00.x",
                          "00:00:00;5", "0:00:00", "-1:00:00"}) {
    CHECK(complaint(oneCall(std::string(bad) + ",allocate,0x10,1,0")).substr(0, 6) == "t:2:3:");
  }
  CHECK(complaint(oneCall(time + "grow,0x10,1,0")) ==
        "t:2:14: expected allocate, free or allocate failure, found 'grow'");
  CHECK(complaint(oneCall(time + "allocate,zz,1,0")) ==
        "t:2:23: expected a pointer in hexadecimal, found 'zz'");
  CHECK(complaint(oneCall(time + "allocate,0x10,1.5,0")) ==
        "t:2:28: expected a size in bytes, at most 2^60, found '1.5'");
  CHECK(complaint(oneCall(time + "allocate,0x10,1")) ==
        "t:2:29: expected a stream in hexadecimal, found the end of the line");
  CHECK(complaint(oneCall(time + "allocate,0x10,1,0,0")) ==
        "t:2:31: expected the end of the line, found ',0'");
  CHECK(complaint(oneCall(time + "allocate,0x10,1180591620717411303424,0")) ==
        "t:2:28: expected a size in bytes, at most 2^60, found '1180591620717411303424', which is "
        "too large");
  CHECK(complaint(oneCall(time + "allocate failure,0x0,1,0,junk")) ==
        "t:2:38: expected the end of the line, found ',junk'");
  CHECK(complaint(oneCall(time + "allocate,0x10,1,0") + "the end\n") ==
        "t:3:8: expected a time of day as 15:23:45.123456, found the end of the line");
  CHECK(complaint(oneCall(time + "free,0x10,1,0")) ==
        "t:2:19: expected the pointer of a live allocation, found '0x10'");
}

}  // namespace
}  // namespace cistern::recording::calls
