// Files as a whole: how they are told apart, and what cannot be read at all.
#include <random>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "interop/trace/write.hpp"
#include "tests/support/catch.hpp"
#include "tests/trace/trace_testing.hpp"

namespace cistern::trace::testing {
namespace {

std::string gzipped(const std::string& content) {
  const TemporaryFile file("whole.trace.gz");
  writeTrace(parseTrace(content, "t"), file.path());
  std::ifstream in(file.path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("the format is told by content, whatever the file is called") {
  const TemporaryFile rmm("a.pickle", "Thread,Time,Action,Pointer,Size,Stream\n");
  CHECK(readTrace(rmm.path()).events.empty());
  const TemporaryFile own("b.csv", "a 1 0 0\n");
  CHECK(readTrace(own.path()).events.size() == 1);
  const TemporaryFile gz("c.trace", gzipped("a 1 0 0\na 2 0 0\n"));
  CHECK(readTrace(gz.path()).events.size() == 2);
}

TEST_CASE("a trace without a name of its own is named after its file") {
  const TemporaryFile file("mine.trace.gz", "a 1 0 0\n");
  const std::string name = readTrace(file.path()).name;
  CHECK(name.substr(name.size() - 5) == "_mine");
  CHECK(stemOf("/x/gpt2.v1.trace.gz") == "gpt2.v1");
  CHECK(stemOf("snapshot.pickle") == "snapshot");
  CHECK(stemOf("bare") == "bare");
}

TEST_CASE("files that hold no trace are refused with what was expected") {
  CHECK(fileComplaint("/nowhere/t") == ": cannot be opened: No such file or directory");
  CHECK(fileComplaint("/") == ": is a folder, not a trace");
  const TemporaryFile empty("empty", "");
  CHECK(fileComplaint(empty.path()) == ": is empty; expected a trace");
  CHECK(complaint("") == "t: is empty; expected a trace");
  const std::string expected =
      "t:1:1: expected a Cistern trace, an RMM log or a PyTorch memory snapshot, found ";
  CHECK(complaint("hello\nworld") == expected + "'hello'");
  CHECK(complaint(std::string(3, '\0')) == expected + "'\\x00\\x00\\x00'");
  CHECK(complaint("\n\n") == expected + "''");
  CHECK(complaint("PK\x03\x04zip").find("this is a zip") != std::string::npos);
}

TEST_CASE("gzip that ends early or is damaged is refused, never read in part") {
  std::string content;
  for (int i = 0; i < 2000; ++i) content += "a " + std::to_string(i * 7919 % 5003) + " 0 1\n";
  const std::string whole = gzipped(content);
  for (const std::size_t length : {whole.size() - 1, whole.size() - 9, whole.size() / 2}) {
    const TemporaryFile file("cut.gz", whole.substr(0, length));
    CHECK(fileComplaint(file.path()) == ": the gzip data ends early");
  }
  std::string damaged = whole;
  damaged[whole.size() / 2] = static_cast<char>(damaged[whole.size() / 2] ^ 0x55);
  const TemporaryFile file("damaged.gz", damaged);
  CHECK(fileComplaint(file.path()).substr(0, 15) == ": the gzip data");
}

TEST_CASE("what follows gzip data is refused, but for zeros and more gzip data") {
  const std::string one = gzipped("a 1 0 0\n"), two = gzipped("a 2 0 0\n");
  const TemporaryFile garbage("garbage.gz", one + "garbage");
  CHECK(fileComplaint(garbage.path()) ==
        fmt::format(": byte {}: expected the end of the file, found something behind the gzip data",
                    one.size()));
  const TemporaryFile padded("padded.gz", one + std::string(300'000, '\0'));
  CHECK(readTrace(padded.path()).events.size() == 1);
  const TemporaryFile members("members.gz", one + two);
  CHECK(readTrace(members.path()).events.size() == 2);
}

TEST_CASE("gzip that unpacks to more than any program's is refused, unless it is asked for") {
  const std::string comment = "# " + std::string(40 * kMiB, 'x') + "\na 1 0 0\n";
  const std::string packed = gzipped(comment);
  REQUIRE(packed.size() < kMiB);
  const TemporaryFile bomb("bomb.gz", packed);
  CHECK(fileComplaint(bomb.path()).find("gzip data unpack to more than 32.00 MiB") !=
        std::string::npos);
  CHECK(readTrace(bomb.path(), {.unpacked_bytes = 64 * kMiB}).events.size() == 1);
  CHECK_THROWS_AS(readTrace(bomb.path(), {.unpacked_bytes = 39 * kMiB}), TraceError);
}

TEST_CASE("what takes a hundredth of its length packed is taken whatever its length",
          "[one-thread]") {
  // Digits that do not repeat, and behind them a run that does. Comments keep their order.
  std::string content;
  std::mt19937_64 random(1);
  while (content.size() < 2 * kMiB) content += "# " + std::to_string(random()) + "\n";
  content += "# " + std::string(40 * kMiB, 'x') + "\n";
  const std::string packed = gzipped(content);
  REQUIRE(packed.size() * 100 > content.size());
  const TemporaryFile file("repetitive.gz", packed);
  CHECK(fileComplaint(file.path()) == "");
}

}  // namespace
}  // namespace cistern::trace::testing
