// Thousands of damaged files of each format, the same ones every time. Each must be read, into
// recordings that hold their invariants, or refused with a TraceError. Anything else ends the test
// program.
#include <fmt/format.h>

#include "interop/trace/trace_file.hpp"
#include "tests/recording/recording_testing.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/mutator.hpp"

namespace cistern::recording::testing {
namespace {

constexpr int kDamaged = 4000;

// How many of the damaged files were read all the same.
int fuzz(const std::string& whole, unsigned seed) {
  test::Mutator mutator(seed);
  int read = 0;
  for (int round = 0; round < kDamaged; ++round) {
    const std::string damaged = mutator.mutate(whole);
    try {
      (void)allParsed(damaged);
      ++read;
    } catch (const trace::TraceError& error) {
      CHECK(std::string_view(error.what()).substr(0, 2) == "t:");
    }
  }
  return read;
}

// Both outcomes must occur, or the damage is too light or too heavy to test much.
void requireReadAndRefused(int read) {
  CHECK(read > kDamaged / 100);
  CHECK(read < kDamaged * 99 / 100);
}

TEST_CASE("a damaged recording is read or refused") {
  std::string content =
      "# {\"name\": \"x\", \"recording\": 1, \"stream_names\": {\"1\": \"0x7f\"}}\n";
  content += "N \"f\" \"g.py\" 12\nS 0 1\nS 1 1\nL 0 \"step\"\nP 0 7\nr alloc 1000 65536 0 1 0\n";
  for (int i = 0; i < 12; ++i) {
    content += fmt::format("a {} {} 12 {:x} {} {} {}\n", i * 4096, i % 3, 4096 * (i + 1), i % 3,
                           i % 2, i % 2);
    if (i % 2 == 1) content += fmt::format("f {} 7\n", i / 2);
    if (i % 4 == 3) content += fmt::format("e {} 1\nt 2 \"step {}\"\n", i / 2, i);
  }
  content +=
      "o 4096 0 1 2 1 0 {\"limit\": 12, \"unused\": [{\"why\": \"too_small\", \"bytes\": 3}]}\n";
  requireReadAndRefused(fuzz(content, 11));
}

TEST_CASE("a damaged RMM log is a recording or refused") {
  std::string content = "Thread,Time,Action,Pointer,Size,Stream\n";
  for (int i = 0; i < 20; ++i) {
    content += fmt::format("12,23:59:{}.123456,{},0x7f{}0,64,0x{}\n", 10 + i,
                           i % 2 == 0 ? "allocate" : "free", i / 2, i % 3);
    if (i % 5 == 4) content += fmt::format("12,23:59:{}.2,allocate failure,0x0,9,0x0\n", 10 + i);
  }
  requireReadAndRefused(fuzz(content, 12));
}

TEST_CASE("a damaged PyTorch snapshot is recordings or refused", "[long]") {
  for (int protocol = 0; protocol <= 5; ++protocol) {
    const std::string path =
        fmt::format("{}/tests/trace/samples/snapshot.p{}.pickle", CISTERN_SOURCE_DIR, protocol);
    requireReadAndRefused(
        fuzz(trace::TraceFile(path).rest(), 13 + static_cast<unsigned>(protocol)));
  }
}

TEST_CASE("a damaged snapshot of Cistern is read or refused") {
  const std::string content =
      "{\"version\":1,\"device\":\"a simulated device whose name is "
      "long\",\"segments\":[{\"address\":\"0x10000\",\"size\":4096,"
      "\"in_pages\":true,\"pool\":[0,7],\"stream\":\"0x0\",\"blocks\":[{\"address\":\"0x10000\","
      "\"size\":1024,\"requested\":1000,\"state\":\"allocated\",\"stream\":\"0x0\"},{\"address\":"
      "\"0x10400\",\"size\":3072,\"requested\":900,\"state\":\"pending\",\"stream\":\"0x5\"}]}]}";
  requireReadAndRefused(fuzz(content, 21));
}

}  // namespace
}  // namespace cistern::recording::testing
