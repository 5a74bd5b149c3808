// The pickles are in protocol 0, which is text.
#include <fmt/format.h>

#include "tests/recording/calls_testing.hpp"
#include "tests/recording/recording_testing.hpp"
#include "tests/support/catch.hpp"

namespace cistern::recording::testing {
namespace {

std::string text(const std::string& value) { return "V" + value + "\n"; }
std::string number(std::uint64_t value) { return fmt::format("I{}\n", value); }
std::string list(const std::string& items) { return "(l(" + items + "e"; }

/// Keys and values in turn, all in the pickle's own words.
std::string dict(const std::vector<std::pair<std::string, std::string>>& fields) {
  std::string whole = "(d";
  for (const auto& [key, value] : fields) whole += text(key) + value + "s";
  return whole;
}

std::string frame(const std::string& name, int line) {
  return dict({{"name", text(name)},
               {"filename", text(name + ".py")},
               {"line", number(std::uint64_t(line))}});
}

std::string entry(const std::string& action, std::uint64_t address, std::uint64_t bytes,
                  std::uint64_t time, const std::string& frames = "(l",
                  const std::string& metadata = "") {
  return dict({{"action", text(action)},
               {"addr", number(address)},
               {"size", number(bytes)},
               {"stream", number(0)},
               {"time_us", number(time)},
               {"compile_context", text("N/A")},
               {"user_metadata", text(metadata)},
               {"frames", frames}});
}

std::string oom(std::uint64_t bytes, std::uint64_t device_free, std::uint64_t time) {
  return dict({{"action", text("oom")},
               {"device_free", number(device_free)},
               {"size", number(bytes)},
               {"stream", number(0)},
               {"time_us", number(time)}});
}

std::string segment(std::uint64_t address, std::uint64_t bytes, const std::string& pool,
                    const std::string& blocks, bool expandable = false) {
  return dict({{"device", number(0)},
               {"address", number(address)},
               {"total_size", number(bytes)},
               {"stream", number(0)},
               {"is_expandable", expandable ? "I01\n" : "I00\n"},
               {"segment_pool_id", pool},
               {"blocks", blocks}});
}

std::string liveBlock(std::uint64_t address, std::uint64_t bytes, const std::string& frames) {
  return dict({{"address", number(address)},
               {"size", number(bytes)},
               {"requested_size", number(bytes - 1)},
               {"state", text("active_allocated")},
               {"frames", frames}});
}

std::string snapshot(const std::string& entries, const std::string& segments = "(l") {
  return dict({{"segments", segments}, {"device_traces", "(l" + list(entries) + "a"}}) + ".";
}

const std::string kDefaultPool = "(I0\nI0\nt";
const std::string kGraphPool = "(I0\nI3\nt";

std::string functionsOf(const Recording& r, std::uint32_t stack) {
  std::string names;
  for (; stack > 0; stack = r.stacks[stack].parent) {
    names += r.frames[r.stacks[stack].frame].function + " ";
  }
  return names;
}

TEST_CASE("an allocation in a snapshot has its stack, label, address and time") {
  const std::string frames = list(frame("inner", 7) + frame("outer", 9));
  const Recording r = parsed(snapshot(entry("alloc", 4096, 100, 50, frames, "layer 3") +
                                      entry("free_requested", 4096, 100, 80)));
  REQUIRE(r.events.size() == 2);
  CHECK(r.source == Source::kPytorch);
  CHECK(r.device == "cuda:0");
  const Event& made = r.events[0];
  CHECK((r.placeOf(made).address == 4096 && made.value == 100 && made.time_us == 0));
  CHECK(functionsOf(r, r.placeOf(made).stack) == "inner outer ");
  CHECK(r.frames[r.stacks[r.placeOf(made).stack].frame].file == "inner.py");
  CHECK(r.frames[r.stacks[r.placeOf(made).stack].frame].line == 7);
  CHECK(r.labels[r.placeOf(made).label].name == "layer 3");
  CHECK((r.events[1].kind == EventKind::kFree && r.events[1].time_us == 30));
  CHECK(r.has_addresses);
  CHECK_FALSE(r.has_reserved);
}

TEST_CASE("entries that share a list of frames share a stack") {
  const std::string shared = list(frame("step", 1)) + "p9\n";
  const Recording r =
      parsed(snapshot(entry("alloc", 4096, 1, 1, shared) + entry("alloc", 8192, 1, 2, "g9\n") +
                      entry("alloc", 12288, 1, 3, list(frame("step", 1)))));
  CHECK(r.stacks.size() == 2);
  CHECK(r.placeOf(r.events[0]).stack == 1);
  CHECK(r.placeOf(r.events[1]).stack == 1);
  CHECK(r.placeOf(r.events[2]).stack == 1);
}

TEST_CASE("what was reserved before the record is worked out from its end") {
  const Recording r = parsed(snapshot(
      entry("segment_free", 0x10000, 4096, 1) + entry("segment_alloc", 0x20000, 8192, 2) +
          entry("segment_unmap", 0x31000, 4096, 3) + entry("segment_map", 0x32000, 4096, 4),
      list(segment(0x20000, 8192, kGraphPool, list(liveBlock(0x20000, 512, list(frame("f", 1))))) +
           segment(0x30000, 4096, kDefaultPool, "(l", true) +
           segment(0x32000, 4096, kDefaultPool, "(l", true))));
  std::vector<std::uint64_t> before;
  std::uint64_t reserved = 0;
  for (std::size_t i = 0; i < r.events.size(); ++i) {
    const Event& event = r.events[i];
    const bool takes = event.kind == EventKind::kReserve || event.kind == EventKind::kMap;
    const bool gives = event.kind == EventKind::kRelease || event.kind == EventKind::kUnmap;
    if (takes) reserved += event.value;
    if (gives) reserved -= event.value;
    if (i < r.first_recorded && takes) before.push_back(r.placeOf(event).address);
  }
  CHECK(before == std::vector<std::uint64_t>{0x10000, 0x30000, 0x31000});
  CHECK(reserved == 8192 + 4096 + 4096);
  CHECK(r.has_reserved);
}

TEST_CASE("a block's pool is that of the segment where it lies") {
  const Recording r = parsed(snapshot(
      entry("alloc", 0x10000, 1, 1) + entry("segment_alloc", 0x20000, 8192, 2) +
          entry("alloc", 0x20100, 1, 3),
      list(segment(0x10000, 4096, kDefaultPool, "(l") + segment(0x20000, 8192, kGraphPool, "(l"))));
  REQUIRE(r.pools.size() == 2);
  CHECK(r.pools[1].uid == 3);
  std::vector<std::uint32_t> pools;
  for (const Event& event : r.events) pools.push_back(r.placeOf(event).pool);
  CHECK(pools == std::vector<std::uint32_t>{0, 0, 1, 1});
}

TEST_CASE("a failed request in a snapshot has what the device had free") {
  const Recording r = parsed(snapshot(entry("alloc", 4096, 100, 5) + oom(1 << 30, 77, 9)));
  REQUIRE(r.failures.size() == 1);
  CHECK(r.events[1].kind == EventKind::kFailed);
  CHECK((r.events[1].value == 1 << 30 && r.events[1].time_us == 4));
  CHECK(r.failures[0].device_free == 77);
  CHECK(r.failures[0].unused.empty());
}

TEST_CASE("annotations become moments in their place") {
  const auto annotation = [](const std::string& name, std::uint64_t time,
                             const std::string& stage) {
    return dict({{"name", text(name)},
                 {"stage", text(stage)},
                 {"device", number(0)},
                 {"time_us", number(time)}});
  };
  const std::string whole = snapshot(entry("alloc", 4096, 1, 10) + entry("alloc", 8192, 1, 30));
  const std::string annotations =
      list(annotation("late", 90, "START") + annotation("step", 20, "START") +
           annotation("step", 25, "END") + annotation("early", 5, "START") + number(3));
  const Recording r =
      parsed(whole.substr(0, whole.size() - 1) + text("external_annotations") + annotations + "s.");
  CHECK(r.marks == std::vector<std::string>{"step", "late"});
  std::vector<std::uint64_t> times;
  for (const Event& event : r.events) times.push_back(event.time_us);
  CHECK(times == std::vector<std::uint64_t>{0, 10, 20, 80});
  CHECK(r.events[1].kind == EventKind::kMark);
}

TEST_CASE("a snapshot without a history has the blocks of its end") {
  const Recording r = parsed(snapshot(
      "", list(segment(4096, 8192, kGraphPool, list(liveBlock(4096, 512, list(frame("f", 1))))))));
  REQUIRE(r.events.size() == 2);
  CHECK(r.first_recorded == 2);
  CHECK((r.events[1].value == 511 && r.placeOf(r.events[1]).pool == 1 &&
         r.placeOf(r.events[1]).stack == 1));
  CHECK(complaint(snapshot("")).starts_with("t: has neither a history nor a block; call"));
}

// A recording's time begins with its first event, be it a segment's.
calls::Calls withoutTimes(const Recording& recording) {
  calls::Calls all = calls::callsOf(recording);
  for (calls::Call& call : all.events) call.delta_us = 0;
  all.duration_us = 0;
  return all;
}

TEST_CASE("the calls of a snapshot's recording are those that a replay reads") {
  for (int protocol = 0; protocol <= 5; ++protocol) {
    const std::string path =
        fmt::format("{}/tests/trace/samples/snapshot.p{}.pickle", CISTERN_SOURCE_DIR, protocol);
    const std::vector<Recording> read = readRecordings(path);
    const FileContents replayed = readCalls(path);
    REQUIRE(read.size() == 2);
    for (std::size_t i = 0; i < read.size(); ++i) {
      audit(read[i]);
      CHECK(withoutTimes(read[i]) == withoutTimes(replayed.recordings[i]));
    }
    CHECK(read[1].name == fmt::format("snapshot.p{} [cuda:1]", protocol));
    CHECK(read[1].frames.at(0).function == "step");
    CHECK(read[1].failures.at(0).device_free == std::uint64_t{1} << 33);
    CHECK(readRecordings(path, {}, 1).at(0).device == "cuda:1");
  }
}

TEST_CASE("call stacks fall under a pickle's limit") {
  // Each frame of the list makes another stack, and takes two bytes of the file.
  std::string bytes = frame("a", 1) + "q\1" + frame("b", 2) + "q\2" + "00(l(";
  for (int i = 0; i < 1'000'000; ++i) bytes += i % 3 == 0 ? "h\1" : "h\2";
  bytes += "eq\0030";
  CHECK(complaint(bytes + snapshot(entry("alloc", 1, 1, 1, "h\3")))
            .find("found values that take more than") != std::string::npos);
}

TEST_CASE("a fault in a snapshot's recording is named with its entry") {
  CHECK(complaint(snapshot(entry("alloc", 1, 1, 1) + entry("segment_alloc", 2, 1, 2) +
                           dict({{"action", text("segment_free")}}))) ==
        "t: device_traces[0][2]: expected 'addr' to be int, found none");
}

TEST_CASE("an odd value that a report can do without costs a note, and not the file") {
  // Python has no line for the first frame: PyTorch writes 2^64 - 1.
  const std::string no_line =
      dict({{"name", text("f")}, {"filename", number(1)}, {"line", "L18446744073709551615L\n"}});
  const std::string odd = dict({{"action", text("alloc")},
                                {"addr", number(4096)},
                                {"size", number(100)},
                                {"stream", number(0)},
                                {"time_us", text("noon")},
                                {"compile_context", number(1)},
                                {"user_metadata", number(2)},
                                {"pool_id", "(I1\nt"},
                                {"frames", list(no_line + number(3) + frame("main", 9))}});
  const std::string failed = dict({{"action", text("oom")},
                                   {"device_free", "I-1\n"},
                                   {"size", number(1)},
                                   {"stream", text("s")},
                                   {"time_us", number(9)}});
  const std::string block = dict({{"address", number(4096)},
                                  {"size", number(512)},
                                  {"requested_size", "I-5\n"},
                                  {"state", text("active_allocated")},
                                  {"frames", number(1)}});
  const Recording r = parsed(snapshot(entry("segment_alloc", 4096, 8192, 5) + odd + failed,
                                      list(segment(4096, 8192, "(I1\nt", list(block)))));
  REQUIRE(r.events.size() == 3);
  CHECK(functionsOf(r, r.placeOf(r.events[1]).stack) == "f main ");
  CHECK(r.frames[r.stacks[r.placeOf(r.events[1]).stack].frame].line == 0);
  CHECK(
      (r.events[1].time_us == 0 && r.placeOf(r.events[1]).label == 0 && r.events[2].time_us == 4));
  std::vector<std::string> keys;
  for (const std::string& note : r.notes) keys.push_back(note.substr(0, note.find(' ')));
  CHECK(keys == std::vector<std::string>{"'compile_context'", "'device_free'", "'filename'",
                                         "'frames'", "'line'", "'pool_id'", "'requested_size'",
                                         "'segment_pool_id'", "'stream'", "'time_us'",
                                         "'user_metadata'"});
}

TEST_CASE("a block of an old snapshot has the stack and size of its newest history") {
  const auto made = [](std::uint64_t bytes, const std::string& name) {
    return dict(
        {{"addr", number(4096)}, {"real_size", number(bytes)}, {"frames", list(frame(name, 12))}});
  };
  const std::string block = dict({{"size", number(512)},
                                  {"state", text("active_allocated")},
                                  {"history", list(made(300, "newest") + made(7, "older"))}});
  const Recording r = parsed(snapshot("", list(segment(4096, 8192, kDefaultPool, list(block)))));
  REQUIRE(r.events.size() == 2);
  CHECK(r.events[1].value == 300);
  CHECK(functionsOf(r, r.placeOf(r.events[1]).stack) == "newest ");
}

TEST_CASE("cudaStreamPerThread in a snapshot counts as one stream, and a note says so") {
  const auto notes = [](const std::string& entries) { return parsed(snapshot(entries)).notes; };
  const auto on = [](std::uint64_t address, std::uint64_t stream) {
    return dict({{"action", text("alloc")},
                 {"addr", number(address)},
                 {"size", number(1)},
                 {"stream", number(stream)}});
  };
  REQUIRE(notes(on(4096, 2) + on(8192, 0x55aa00)).size() == 1);
  CHECK(notes(on(4096, 2)).at(0).starts_with("Stream 0x2 is cudaStreamPerThread"));
  CHECK(notes(on(4096, 1) + on(8192, 2)).empty());  // a program that counts its streams
}

}  // namespace
}  // namespace cistern::recording::testing
