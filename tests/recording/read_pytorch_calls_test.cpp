// The samples are written by samples/make_samples.py; what they hold is explained there.
#include <fmt/format.h>

#include "tests/recording/calls_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::calls {
namespace {

using Events = std::vector<Call>;

// Protocol 0 in text: a dict of one key.
std::string dict(const std::string& key, const std::string& value) {
  return "(dV" + key + "\n" + value + "s";
}
std::string list(const std::string& value) { return "(l" + value + "a"; }

// A snapshot whose one device has these entries.
std::string snapshotOf(const std::string& entries) {
  return dict("device_traces", list("(l" + entries)) + ".";
}

std::string entry(const std::string& action, const std::string& address,
                  const std::string& size = "8", const std::string& stream = "0") {
  return fmt::format("(dVaction\nV{}\nsVaddr\nI{}\nsVsize\nI{}\nsVstream\nI{}\nsa", action, address,
                     size, stream);
}

// A segment with one live block.
std::string segmentOn(int device) {
  return fmt::format(
      "(dVdevice\nI{}\nsVaddress\nI8192\nsVstream\nI0\nsVblocks\n"
      "(l(dVsize\nI512\nsVstate\nVactive_allocated\nsas",
      device);
}

TEST_CASE("a PyTorch snapshot is read in every pickle protocol") {
  for (int protocol = 0; protocol <= 5; ++protocol) {
    const FileContents read =
        readCalls(samplePath(fmt::format("snapshot.p{}.pickle", protocol)), {}, 1);
    REQUIRE(read.recordings.size() == 1);
    audit(read.recordings[0]);
    const Calls trace = callsOf(read.recordings[0]);
    CHECK(trace.events == Events{allocation(1000, 0, 0), allocation(100, 0, 0),
                                 allocation(64, 0, 0), release(0, 0, 0), allocation(512, 0, 50),
                                 allocation(3'000'000, 1, 10), release(2, 0, 10), release(4, 1, 30),
                                 allocation(700, 0, 100)});
    CHECK(trace.peak_requested_bytes == 3'000'676);
    CHECK(trace.duration_us == 200);
    CHECK(trace.streams == 2);
    CHECK(trace.name == fmt::format("snapshot.p{} [cuda:1]", protocol));
    CHECK(trace.notes.empty());
  }
}

TEST_CASE("a snapshot of several GPUs has a trace for each that has a history") {
  const FileContents read = readCalls(samplePath("snapshot.p5.pickle"));
  CHECK(read.of_several);
  CHECK(read.left_out.empty());
  REQUIRE(read.recordings.size() == 2);
  CHECK(read.recordings[0].device == "cuda:0");
  CHECK(callsOf(read.recordings[0]).events == Events{allocation(512, 0, 0)});
  CHECK(read.recordings[0].name == "snapshot.p5 [cuda:0]");
  CHECK(read.recordings[1].events.size() == 9);
}

TEST_CASE("a GPU that a snapshot does not have is refused with those that it has") {
  const std::string path = samplePath("snapshot.p5.pickle");
  for (const std::uint32_t gpu : {2u, 5u}) {
    CHECK_THROWS_WITH(
        readCalls(path, {}, gpu),
        fmt::format("{}: has no history of cuda:{}; it has that of cuda:0, cuda:1", path, gpu));
  }
}

TEST_CASE("a snapshot without a history is refused, whatever its segments hold") {
  const std::string how =
      "; call torch.cuda.memory._record_memory_history(context=None, max_entries=10_000_000) "
      "before "
      "the steps, and _dump_snapshot after them";
  const std::string nothing = "t: has no history of allocations" + how;
  CHECK(complaint(dict("device_traces", "(l") + ".") == nothing);
  CHECK(complaint(snapshotOf("")) == nothing);
  CHECK(complaint(snapshotOf(entry("segment_alloc", "1"))) == nothing);
  // All that is left in a record of one entry.
  CHECK(complaint(snapshotOf(entry("free_completed", "4096"))) == nothing);
  CHECK(complaint("(dVdevice_traces\n" + list("(l") + "sVsegments\n" + list(segmentOn(0)) + "s.") ==
        "t: has no history of allocations, only 1 block of 512 B that lived at its end" + how);
}

TEST_CASE("memory of a GPU without a history is named, if another GPU has one") {
  const std::string content = "(dVdevice_traces\n" + list("(l" + entry("alloc", "4096")) +
                              "sVsegments\n" + list(segmentOn(3)) + "s.";
  const FileContents read = parseCalls(content);
  CHECK(read.recordings.size() == 1);
  CHECK_FALSE(read.of_several);
  CHECK(read.left_out ==
        std::vector<std::string>{"cuda:3 has 1 block of 512 B and no history, and is left out"});
  CHECK(parseCalls(content, 0).left_out.empty());
  CHECK(complaint("(dVdevice_traces\n(lsVsegments\n" + list(segmentOn(-1)) + "s.") ==
        "t: segments[0]: expected 'device' to be the number of a GPU, found -1");
}

TEST_CASE("a snapshot needs neither segments nor times") {
  const Calls trace = parsed(snapshotOf(entry("alloc", "4096") + entry("free_requested", "4096")));
  CHECK(trace.events == Events{allocation(8, 0, 0), release(0, 0, 0)});
}

TEST_CASE("a free that is completed later than at once ends the uses of other streams") {
  const std::string used = entry("alloc", "4096") + entry("alloc", "8192") +
                           entry("free_requested", "4096") + entry("segment_alloc", "0");
  const Calls at_once =
      parsed(snapshotOf(used + entry("free_completed", "4096") + entry("free_requested", "8192")));
  CHECK(at_once.events == Events{allocation(8, 0, 0), allocation(8, 0, 0), release(0, 0, 0),
                                 release(1, 0, 0),
                                 usesEnd(1, 0, 0)});  // the record ends while the second one waits
  CHECK(at_once.stream_uses == StreamUses::kRecorded);

  const Calls later = parsed(snapshotOf(used + entry("alloc", "16384") +
                                        entry("free_completed", "4096") + entry("alloc", "4096")));
  CHECK(later.events == Events{allocation(8, 0, 0), allocation(8, 0, 0), release(0, 0, 0),
                               allocation(8, 0, 0), usesEnd(0, 0, 0), allocation(8, 0, 0)});
}

TEST_CASE("a snapshot of several streams without completed frees says that it lacks them") {
  const auto uses = [](const std::string& entries) {
    return parsed(snapshotOf(entries)).stream_uses;
  };
  const std::string other = entry("alloc", "8192", "8", "77");
  const std::string freed = entry("alloc", "4096") + entry("free_requested", "4096");
  CHECK(uses(other + freed) == StreamUses::kMissing);
  CHECK(uses(freed) == StreamUses::kNotSaid);
  CHECK(uses(other + freed + entry("free_completed", "4096")) == StreamUses::kRecorded);
  CHECK(uses(other + entry("alloc", "4096")) == StreamUses::kRecorded);
  const std::string again = entry("alloc", "4096") + entry("free_requested", "8192");
  CHECK(uses(other + freed + again + entry("free_completed", "8192")) == StreamUses::kMissing);
}

TEST_CASE("blocks without addresses of their own lie end to end") {
  const std::string block = "(dVsize\nI512\nsVstate\nVactive_allocated\nsa";
  const std::string segment = "(dVaddress\nI4096\nsVstream\nI0\nsVblocks\n(l" + block + block + "s";
  const std::string content =
      "(dVdevice_traces\n" +
      list("(l" + entry("free_requested", "4608") + entry("free_completed", "4608")) +
      "sVsegments\n" + list(segment) + "s.";
  // The second block is the one freed, with the size that its free gives.
  CHECK(parsed(content).events ==
        Events{allocation(512, 0, 0), allocation(8, 0, 0), release(1, 0, 0)});
}

TEST_CASE("a fault in a snapshot is named with its entry and what was expected") {
  CHECK(complaint("\x80\x04].") == "t: the snapshot: expected a dict, found list");
  CHECK(complaint("(d.") == "t: the snapshot: expected 'device_traces' to be list, found none");
  CHECK(complaint(dict("device_traces", "I1\n") + ".") ==
        "t: the snapshot: expected 'device_traces' to be list, found int");
  CHECK(complaint(snapshotOf("I1\na")) == "t: device_traces[0][0]: expected a dict, found int");
  CHECK(complaint(snapshotOf("(dVaction\nValloc\nsa")) ==
        "t: device_traces[0][0]: expected 'addr' to be int, found none");
  CHECK(complaint(snapshotOf(entry("alloc", "1") + entry("alloc", "2", "-1"))) ==
        "t: device_traces[0][1]: expected 'size' to be a size in bytes, found -1");
  CHECK(complaint(snapshotOf(entry("alloc", "1", "2000000000000000000"))) ==
        "t: device_traces[0][0]: expected at most 2^60 bytes, found 2000000000000000000");
  CHECK(complaint(snapshotOf(entry("alloc", "1") + entry("free_requested", "1") +
                             entry("segment_free", "1") + entry("free_requested", "1"))) ==
        "t: device_traces[0][3]: address 0x1 is freed twice");
  CHECK(complaint("(dVdevice_traces\n(lsVsegments\n" + list("N") + "s.") ==
        "t: segments[0]: expected a dict, found None");
}

TEST_CASE("an allocation where another lives is refused with the entries of both") {
  CHECK(complaint(snapshotOf(entry("alloc", "1") + entry("alloc", "2") + entry("alloc", "1"))) ==
        "t: device_traces[0][2]: address 0x1 is allocated while device_traces[0][0] lives there");
  CHECK(complaint(snapshotOf(entry("alloc", "1") + entry("free_requested", "1") +
                             entry("alloc", "1") + entry("free_completed", "1"))) == "");
  const std::string block = "(dVaddress\nI4096\nsVsize\nI512\nsVstate\nVactive_allocated\nsa";
  const std::string segment = "(dVaddress\nI4096\nsVstream\nI0\nsVblocks\n(l" + block + block + "s";
  CHECK(complaint("(dVdevice_traces\n(lsVsegments\n" + list(segment) + "s.") ==
        "t: segments[0].blocks[1]: address 0x1000 is that of two live blocks");
}

TEST_CASE("what follows a pickle is refused with its place") {
  const std::string whole = snapshotOf(entry("alloc", "1"));
  CHECK(complaint(whole) == "");
  CHECK(complaint(whole + "more") ==
        fmt::format("t: byte {}: expected the end of the file, found 4 bytes behind the pickle",
                    whole.size()));
}

TEST_CASE("a size beyond 64 bits is said to be too large") {
  CHECK(complaint(snapshotOf(entry("alloc", "1", "1180591620717411303424"))) ==
        "t: device_traces[0][0]: expected 'size' to be an int below 2^63, found a larger one");
}

TEST_CASE("a dict or a list that stands in many places is refused") {
  std::string shared = "(dVdevice_traces\n(lsVsegments\n(l";
  shared += "(dVaddress\nI0\nsVstream\nI0\nsVblocks\n(l";
  for (int i = 0; i < 10'000; ++i) shared += "(dVsize\nI1\nsVstate\nVinactive\nsa";
  shared += "sp0\na";
  for (int i = 0; i < 100'000; ++i) shared += "g0\na";
  CHECK(complaint(shared + "s.") ==
        "t: segments[1].blocks[0]: expected each entry once, found one that stands in several "
        "places");
  CHECK(
      complaint(snapshotOf(entry("alloc", "1").insert(entry("alloc", "1").size() - 1, "p0\n") +
                           "g0\na")) ==
      "t: device_traces[0][1]: expected each entry once, found one that stands in several places");

  std::string wide = "(d";
  for (int i = 0; i < 65; ++i) wide += "NNs";
  CHECK(complaint(snapshotOf(wide + "a")) ==
        "t: device_traces[0][0]: expected a dict of at most 64 keys");
}

}  // namespace
}  // namespace cistern::recording::calls
