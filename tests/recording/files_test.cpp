// Files as a whole: how they are told apart, and what cannot be read at all.
#include <random>

#include <fmt/format.h>
#include <zlib.h>

#include "allocator/base/bytes.hpp"
#include "interop/recording/formats/write_trace.hpp"
#include "tests/recording/calls_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::calls {
namespace {

std::string gzipped(const std::string& content) {
  const TemporaryFile file("whole.trace.gz");
  writeTrace(parsedRecording(content), file.path());
  std::ifstream in(file.path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A trace needs an event, and this does not.
std::string gzippedText(const std::string& text) {
  const TemporaryFile file("text.gz");
  const gzFile out = gzopen(file.path().c_str(), "wb");
  if (!text.empty()) gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
  return file.content();
}

TEST_CASE("the format is told by content, whatever the file is called") {
  const TemporaryFile rmm("a.pickle",
                          "Thread,Time,Action,Pointer,Size,Stream\n1,00:00:00,allocate,0x10,8,0\n");
  CHECK(readOne(rmm.path()).events.size() == 1);
  const TemporaryFile own("b.csv", "a 1 0 0\n");
  CHECK(readOne(own.path()).events.size() == 1);
  const TemporaryFile gz("c.trace", gzipped("a 1 0 0\na 2 0 0\n"));
  CHECK(readOne(gz.path()).events.size() == 2);
}

TEST_CASE("a trace without a name of its own is named after its file") {
  const TemporaryFile file("mine.trace.gz", "a 1 0 0\n");
  const std::string name = readOne(file.path()).name;
  CHECK(name.substr(name.size() - 5) == "_mine");
  CHECK(trace::stemOf("/x/gpt2.v1.trace.gz") == "gpt2.v1");
  CHECK(trace::stemOf("snapshot.pickle") == "snapshot");
  CHECK(trace::stemOf("bare") == "bare");
}

TEST_CASE("files that hold no trace are refused with what was expected") {
  CHECK(fileComplaint("/nowhere/t") == ": cannot be opened: No such file or directory");
  CHECK(fileComplaint("/") == ": is a folder, not a trace");
  const TemporaryFile empty("empty", "");
  CHECK(fileComplaint(empty.path()) == ": is empty; " + std::string(trace::kHowToRecord));
  const TemporaryFile nothing("nothing.gz", gzippedText(""));
  CHECK(fileComplaint(nothing.path()) == ": is empty; " + std::string(trace::kHowToRecord));
  CHECK(complaint("") == "t: is empty; " + std::string(trace::kHowToRecord));
  const std::string expected =
      "t:1:1: expected a Cistern trace, an RMM log or a PyTorch memory snapshot, found ";
  CHECK(complaint("hello\nworld") == expected + "'hello'");
  CHECK(complaint(std::string(3, '\0')) == expected + "'\\x00\\x00\\x00'");
  CHECK(complaint("\n\n") == expected + "''");
}

TEST_CASE("what is packed by another program is refused with what unpacks it") {
  using namespace std::string_literals;
  const std::vector<std::pair<std::string, const char*>> packed{
      {"PK\x03\x04zip", "; this is a zip: write snapshots with torch.cuda.memory._dump_snapshot"},
      {"\x28\xb5\x2f\xfd more", "; this is zstd: `zstd -dc FILE | cistern replay -`"},
      {"\xfd\x37zXZ\0 more"s, "; this is xz: `xz -dc FILE | cistern replay -`"},
      {"BZh91AY", "; this is bzip2: `bzip2 -dc FILE | cistern replay -`"},
      {"\x04\x22\x4d\x18 more", "; this is lz4: `lz4 -dc FILE | cistern replay -`"},
  };
  for (const auto& [start, hint] : packed) {
    const TemporaryFile file("packed", start);
    CHECK(fileComplaint(file.path()).find(hint) != std::string::npos);
  }
}

TEST_CASE("a device is refused by name, and not read") {
  const std::string refusal =
      ": is a device, not a trace; a trace is a file, a pipe, or - for the standard input";
  for (const char* device : {"/dev/zero", "/dev/null"}) CHECK(fileComplaint(device) == refusal);
}

TEST_CASE("a file that records nothing is refused with how to record") {
  const std::string refusal = "t: records no allocation; " + std::string(trace::kHowToRecord);
  CHECK(complaint("# nothing else\n") == refusal);
  CHECK(complaint("# {\"name\":\"x\"}") == refusal);
  const std::string header = "Thread,Time,Action,Pointer,Size,Stream\n";
  const std::string rmm_refusal =
      "t: records no allocation behind its header; set RMM's logging resource before the first "
      "one, "
      "and flush() it at the end";
  CHECK(complaint(header) == rmm_refusal);
  CHECK(complaint(header + "1,00:00:00,allocate failure,(nil),8,0\n") == rmm_refusal);
}

TEST_CASE("a program that only allocates nothing is a program") {
  const Calls trace = parsed("a 0 0 0\na 0 0 1\nf 0 1\n");
  CHECK(trace.events.size() == 3);
  CHECK(trace.peak_requested_bytes == 0);
}

TEST_CASE("only a PyTorch snapshot has GPUs to choose from") {
  const auto refusal = [](const std::string& content) {
    try {
      (void)parseCalls(content, 0);
    } catch (const TraceError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(
      refusal("a 1 0 0\n") ==
      "t: this is a Cistern trace, and --gpu chooses one of the GPUs in a PyTorch memory snapshot");
  CHECK(refusal("Thread,Time,Action,Pointer,Size,Stream\n") ==
        "t: this is an RMM log, and --gpu chooses one of the GPUs in a PyTorch memory snapshot");
}

TEST_CASE("comments beyond the first 65,536 are read over") {
  std::string content;
  for (int i = 0; i < 70'000; ++i) content += "#\n";
  CHECK(parsed(content + "a 1 0 0\n").notes.size() == 65'536);
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

TEST_CASE("a snapshot that comes in many pieces is read as a whole one is") {
  std::string content = "(dVdevice_traces\n(l(l";
  for (int i = 0; i < 20'000; ++i) {
    content += fmt::format("(dVaction\nValloc\nsVaddr\nI{}\nsVsize\nI{}\nsVstream\nI0\nsa",
                           64 * (i + 1), i % 5003);
  }
  content += "as.";
  const Calls whole = parsed(content);
  CHECK(whole.allocations == 20'000);
  const TemporaryFile plain("long.pickle", content), packed("long.gz", gzippedText(content));
  for (const TemporaryFile* file : {&plain, &packed}) {
    CHECK(readOne(file->path()).events == whole.events);
  }
  const TemporaryFile cut("cut.pickle", content.substr(0, content.size() - 1));
  CHECK(
      fileComplaint(cut.path()) ==
      fmt::format(": byte {}: expected an opcode, found the end of the file", content.size() - 1));
}

TEST_CASE("what follows gzip data is refused, but for zeros and more gzip data") {
  const std::string one = gzipped("a 1 0 0\n"), two = gzipped("a 2 0 0\n");
  const TemporaryFile garbage("garbage.gz", one + "garbage");
  CHECK(fileComplaint(garbage.path()) ==
        fmt::format(": byte {}: expected the end of the file, found something behind the gzip data",
                    one.size()));
  const TemporaryFile padded("padded.gz", one + std::string(300'000, '\0'));
  CHECK(readOne(padded.path()).events.size() == 1);
  const TemporaryFile members("members.gz", one + two);
  CHECK(readOne(members.path()).events.size() == 2);
}

TEST_CASE("gzip that unpacks to more than any program's is refused, unless it is asked for") {
  const std::string comment = "# " + std::string(40 * kMiB, 'x') + "\na 1 0 0\n";
  const std::string packed = gzipped(comment);
  REQUIRE(packed.size() < kMiB);
  const TemporaryFile bomb("bomb.gz", packed);
  CHECK(fileComplaint(bomb.path()).find("gzip data unpack to more than 8.00 MiB") !=
        std::string::npos);
  CHECK(readOne(bomb.path(), {.unpacked_bytes = 64 * kMiB}).events.size() == 1);
  CHECK_THROWS_AS(readOne(bomb.path(), {.unpacked_bytes = 39 * kMiB}), TraceError);
}

TEST_CASE("what takes a hundredth of its length packed is taken whatever its length", "[long]") {
  // Digits that do not repeat, and behind them a run that does.
  std::string content;
  std::mt19937_64 random(1);
  while (content.size() < 2 * kMiB) content += "# " + std::to_string(random()) + "\n";
  content += "# " + std::string(40 * kMiB, 'x') + "\na 1 0 0\n";
  const std::string packed = gzippedText(content);
  REQUIRE(packed.size() * 100 > content.size());
  const TemporaryFile file("repetitive.gz", packed);
  CHECK(fileComplaint(file.path()) == "");
}

}  // namespace
}  // namespace cistern::recording::calls
