// Files as a whole: how they are told apart, and what cannot be read at all.
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

TEST_CASE("a file longer than the limit is refused before it is all in memory") {
  const TemporaryFile file("long", std::string(100, '#'));
  CHECK(loadFile(file.path(), 100).size() == 100);
  CHECK_THROWS_AS(loadFile(file.path(), 99), TraceError);
}

}  // namespace
}  // namespace cistern::trace::testing
