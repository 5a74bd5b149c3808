// Thousands of damaged files of each format, the same ones every time. Each must be read, into a
// trace that holds its invariants, or refused with a TraceError; anything else ends the test
// program.
#include "interop/recording/formats/write_trace.hpp"
#include "tests/recording/calls_testing.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/mutator.hpp"

namespace cistern::recording::calls {
namespace {

using test::Mutator;

constexpr int kRounds = 4000;

// How many of the damaged files were read all the same.
int fuzz(const std::string& seed_file, unsigned seed) {
  Mutator mutator(seed);
  int read = 0;
  for (int round = 0; round < kRounds; ++round) {
    const std::string damaged = mutator.mutate(seed_file);
    try {
      for (const Recording& recording : parseCalls(damaged).recordings) audit(recording);
      ++read;
    } catch (const TraceError& error) {
      CHECK(std::string_view(error.what()).substr(0, 2) == "t:");
    }
  }
  return read;
}

// Both outcomes must occur, or the damage is too light or too heavy to test much.
void requireBothOutcomes(int read) {
  CHECK(read > kRounds / 100);
  CHECK(read < kRounds * 99 / 100);
}

TEST_CASE("a damaged trace in Cistern's format is read or refused") {
  std::string content = "# {\"name\": \"x\"}\n";
  for (int i = 0; i < 20; ++i) {
    content += "a " + std::to_string(i * i * 4096) + " " + std::to_string(i % 3) + " 12\n";
    if (i % 2 == 1) content += "f " + std::to_string(i / 2) + " 7\n";
    if (i % 4 == 3) content += "e " + std::to_string(i / 2) + " 1\n";
  }
  requireBothOutcomes(fuzz(content, 1));
}

TEST_CASE("a damaged RMM log is read or refused") {
  std::string content = "Thread,Time,Action,Pointer,Size,Stream\n";
  for (int i = 0; i < 20; ++i) {
    const std::string rest = ",0x7f" + std::to_string(i / 2) + "0,64,0x" + std::to_string(i % 3);
    content += "12,23:59:" + std::to_string(10 + i) + ".123456,";
    content += (i % 2 == 0 ? "allocate" : "free") + rest + "\n";
  }
  requireBothOutcomes(fuzz(content, 2));
}

TEST_CASE("a damaged PyTorch snapshot is read or refused", "[long]") {
  for (unsigned protocol = 0; protocol <= 5; ++protocol) {
    const std::string name = "snapshot.p" + std::to_string(protocol) + ".pickle";
    requireBothOutcomes(fuzz(trace::TraceFile(samplePath(name)).rest(), 3 + protocol));
  }
}

TEST_CASE("a damaged gzip file is read or refused", "[long]") {
  const TemporaryFile whole("whole.trace.gz");
  writeTrace(parsedRecording("a 1 0 0\na 2 3 4\nf 0 1\n"), whole.path());
  std::ifstream in(whole.path(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  Mutator mutator(9);
  for (int round = 0; round < kRounds / 10; ++round) {
    const TemporaryFile damaged("damaged.gz", mutator.mutate(bytes));
    try {
      for (const Recording& recording : readCalls(damaged.path()).recordings) audit(recording);
    } catch (const TraceError& error) {
      CHECK(error.file() == damaged.path().string());
    }
  }
}

}  // namespace
}  // namespace cistern::recording::calls
