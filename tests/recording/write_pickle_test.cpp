#include "interop/recording/formats/write_pickle.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "interop/recording/formats/end_state.hpp"
#include "tests/recording/formats_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::testing {
namespace {

int python(const std::string& script, const std::filesystem::path& snapshot) {
  const std::string path = fmt::format("{}/tests/recording/{}", CISTERN_SOURCE_DIR, script);
  return std::system(fmt::format("python3 '{}' '{}'", path, snapshot.string()).c_str());
}

TEST_CASE("a snapshot that is written is read with the same events") {
  const test::TemporaryFile file("out.pickle");
  const Recording before = sampleRecording();
  writePickle({before}, file.path());
  const Recording after = readRecordings(file.path()).at(0);
  audit(after);
  CHECK(after.device == "cuda:1");
  REQUIRE(after.events.size() == before.events.size() - 2);
  std::size_t at = 0;
  for (const Event& event : before.events) {
    if (event.location == Location::kHost) continue;
    const Event& read = after.events.at(at++);
    const Place &place = before.placeOf(event), &read_place = after.placeOf(read);
    CHECK((read.kind == event.kind && read.value == event.value));
    CHECK((read_place.address == place.address && read.time_us == event.time_us));
    CHECK(after.streams[read.stream] == before.streams[event.stream]);
    CHECK((read_place.stack == 0) == (place.stack == 0));
  }
  CHECK(after.marks == before.marks);
  CHECK(after.failures.at(0).device_free == 12);
  CHECK(after.labels.at(1).name == "forward / layer 0");
  CHECK(after.pools.at(after.placeOf(after.events[3]).pool).uid == 7);
}

TEST_CASE("Python reads a snapshot that is written, in the shape of PyTorch's") {
  const test::TemporaryFile file("out.pickle");
  Recording other = parsed("#\na 700 0 0 10000 0 0 0\n");
  other.device = "cuda:0";
  writePickle({sampleRecording(), other}, file.path());
  CHECK(python("walk_snapshot.py", file.path()) == 0);
}

// A block on two pages that sleep and wake, one in host memory, one on half a page, and one that
// moves to the host and stays there.
const char* const kWithoutMemory =
    "# {\"recording\": 1, \"device\": \"cuda:0\"}\n"
    "r map 200000 2097152 0 0 1\nr map 400000 2097152 0 0 1\n"
    "a 3000000 0 1 200000 0 0 0\n"
    "r map 800000 2097152 0 0 1 host\n"
    "a 1000 0 1 800000 0 0 0\n"
    "a 500 0 1 500000 0 0 0\n"
    "r unmap 200000 2097152 0 0 1\nr unmap 400000 2097152 0 0 1\n"
    "r map a00000 2097152 0 0 1\na 700 0 1 a00000 0 0 0\nf 3 1\n"
    "r map 200000 2097152 0 0 1\nr map 400000 2097152 0 0 1\n"
    "f 0 1\n"
    "r unmap 400000 2097152 0 0 1\nr map 400000 2097152 0 0 1 host\n";

TEST_CASE("a block is in a snapshot while it has memory of the device") {
  const test::TemporaryFile file("out.pickle");
  writePickle({parsed(kWithoutMemory)}, file.path());
  const Recording read = readRecordings(file.path()).at(0);
  audit(read);
  std::string kinds;
  for (const Event& event : read.events) kinds += "afersmuot"[std::size_t(event.kind)];
  // Sleep: each block is freed before the page goes. Wake: allocated behind the last page.
  CHECK(kinds ==
        "mmaa"
        "fufu"
        "maf"
        "mmaa"
        "f"
        "fu");
}

TEST_CASE("PyTorch's viewer finds the segment of each block after each event") {
  const test::TemporaryFile file("out.pickle");
  const std::vector<Recording> all = {parsed(kWithoutMemory), sampleRecording(),
                                      parsed("#\na 700 0 0 10000 0 0 0\n")};
  for (const Recording& recording : all) {
    writePickle({recording}, file.path());
    CHECK(python("view_snapshot.py", file.path()) == 0);
  }
}

TEST_CASE("the blocks of a segment cover it at the end") {
  const std::vector<EndSegment> segments = endState(sampleRecording(), {});
  REQUIRE(segments.size() == 2);
  for (const EndSegment& segment : segments) {
    std::uint64_t bytes = 0;
    for (const EndBlock& block : segment.blocks) bytes += block.bytes;
    CHECK(bytes == segment.bytes);
  }
  REQUIRE(segments[0].blocks.size() == 3);
  CHECK(segments[0].blocks[0].bytes == 1024);
  CHECK(segments[0].blocks[1].requested == 70);
  CHECK(segments[0].blocks[1].bytes == 512);
  CHECK(segments[1].expandable);
  CHECK(segments[1].pool == 1);
}

TEST_CASE("without reserved memory one segment holds all blocks") {
  const std::vector<EndSegment> segments =
      endState(parsed("#\na 512 0 0 1000 0 0 0\na 100 0 0 4000 0 0 0\nf 0 0\n"), {});
  REQUIRE(segments.size() == 1);
  CHECK(segments[0].address == 0x1000);
  CHECK(segments[0].bytes == 0x3000 + 100);
  REQUIRE(segments[0].blocks.size() == 2);
  CHECK(segments[0].blocks[1].requested == 100);
}

TEST_CASE("a recording without addresses cannot be a snapshot") {
  const test::TemporaryFile file("out.pickle");
  CHECK_THROWS_WITH(writePickle({parsed("# {\"name\": \"x\"}\na 1 0 0\n")}, file.path()),
                    "x: knows no addresses, which a PyTorch snapshot needs");
}

}  // namespace
}  // namespace cistern::recording::testing
