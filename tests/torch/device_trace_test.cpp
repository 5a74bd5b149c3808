// The trace that python -m cistern.torch records.
#include "interop/torch/device_trace.hpp"

#include <regex>

#include "tests/support/catch.hpp"
#include "tests/support/temporary_file.hpp"

namespace cistern::test {
namespace {

using cistern_torch::DeviceTrace;

/// What `record` leaves in the file, without times.
template <class Record>
std::string recordedBy(Record record) {
  const TemporaryFile file("0.trace");
  DeviceTrace trace(file.path().string(), "a script", DeviceTrace::Clock::now());
  record(trace);
  CHECK(trace.finish() == 0);
  return std::regex_replace(file.content(), std::regex(" \\d+\n"), "\n");
}

const std::string kHeader = "# {\"name\": \"a script\", \"stream_uses\": \"recorded\"}\n";

}  // namespace

TEST_CASE("a trace is recorded by addresses, and says that it records uses",
          "[torch][device_trace]") {
  const int side = 0;
  CHECK(recordedBy([&](DeviceTrace& trace) {
          trace.allocated(4096, 100, nullptr);
          trace.allocated(8192, 200, &side);
          trace.freed(4096);
          trace.usesEnded(4096);
          trace.freed(16384);  // from before the recording
          trace.usesEnded(16384);
          trace.allocated(4096, 300, nullptr);
          trace.freed(4096);
          trace.usesEnded(4096);
        }) == kHeader + "a 100 0\na 200 1\nf 0\na 300 0\nf 2\n");
}

TEST_CASE("uses that end later than at the free have a line", "[torch][device_trace]") {
  CHECK(recordedBy([](DeviceTrace& trace) {
          trace.allocated(4096, 100, nullptr);
          trace.allocated(8192, 200, nullptr);
          trace.freed(4096);
          trace.freed(8192);
          trace.usesEnded(8192);
          trace.usesEnded(4096);
          trace.usesEnded(4096);
        }) == kHeader + "a 100 0\na 200 0\nf 0\nf 1\ne 0\n");
}

TEST_CASE("uses that last to the end of the recording end there", "[torch][device_trace]") {
  CHECK(recordedBy([](DeviceTrace& trace) {
          for (std::size_t i = 1; i <= 3; ++i) trace.allocated(i * 4096, 100, nullptr);
          for (std::size_t i = 3; i >= 1; --i) trace.freed(i * 4096);
        }) == kHeader + "a 100 0\na 100 0\na 100 0\nf 2\nf 1\nf 0\ne 0\ne 1\ne 2\n");
}

TEST_CASE("a recording that cannot be written says why", "[torch][device_trace]") {
  DeviceTrace trace("/nowhere/0.trace", "x", DeviceTrace::Clock::now());
  trace.allocated(4096, 100, nullptr);
  CHECK(trace.finish() == ENOENT);
}

}  // namespace cistern::test
