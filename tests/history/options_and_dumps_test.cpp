// Histories that the options ask for, and dumps of failures.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <unistd.h>

#include "tests/history/history_support.hpp"
#include "tests/support/child_process.hpp"

namespace cistern::test {
namespace {

namespace fs = std::filesystem;
using recording::EventKind;
using recording::Recording;

std::string failureOf(CachingAllocator& allocator, std::size_t bytes) {
  try {
    (void)allocator.allocate(bytes, Stream{});
  } catch (const OutOfMemory& error) {
    return error.what();
  }
  return "it fits";
}

TEST_CASE("the option history keeps events from the beginning") {
  SimRig rig("history:50,history_stacks:true");
  CHECK(rig.allocator.recordsHistory());
  for (int i = 0; i < 100; ++i) rig.allocator.free(rig.allocator.allocate(1000, Stream{}));
  const Recording read = dumped(rig.allocator);
  CHECK(read.events.size() - read.first_recorded == 50);
  CHECK(read.stacks.size() > 1);
}

TEST_CASE("the option history_folder gives each allocator a file") {
  const Folder folder;
  for (int i = 0; i < 2; ++i) {
    SimRig rig("history_folder:" + folder.text());
    rig.allocator.free(rig.allocator.allocate(1000, Stream{}));
  }
  REQUIRE(folder.files().size() == 2);
  for (const fs::path& file : folder.files()) CHECK(readOne(file).allocations == 1);
}

TEST_CASE("a folder for histories that is not there is an error that names the file") {
  CHECK_THROWS_WITH(SimRig("history_folder:/nowhere/at/all"),
                    Catch::Matchers::ContainsSubstring("/nowhere/at/all/history-"));
}

// In a child: a process writes a few dumps only, whatever else this one has written.
TEST_CASE("a dump of a failure says what lives, what was asked for, and how to draw it") {
  const Folder folder;
  const int code = exitCodeOfChild([&] {
    SimRig rig("oom_dump:" + folder.text(), simOf(64 * kMiB));
    const LabelScope label("attention");
    void* const held = rig.allocator.allocate(40 * kMiB, Stream{});
    const std::string text = failureOf(rig.allocator, 41 * kMiB);
    const std::string path = folder.files().at(0).string();
    const bool named =
        text.find("\n  to see it: cistern report " + path + " -o oom.html") != std::string::npos;
    rig.allocator.free(held);
    return named ? 0 : 1;
  });
  CHECK(code == 0);
  REQUIRE(folder.files().size() == 1);
  const Recording read = readOne(folder.files()[0]);
  CHECK(read.source == recording::Source::kDump);
  CHECK(read.allocations == 1);
  REQUIRE(read.failures.size() == 1);
  CHECK(read.failures[0].requested == 41 * kMiB);
  const recording::Event& failed = read.events.back();
  CHECK(failed.kind == EventKind::kFailed);
  CHECK(read.placeOf(failed).stack != 0);
  CHECK(read.labels[read.placeOf(failed).label].name == "attention");
  CHECK(pictureOf(read).living.begin()->second == 40 * kMiB);
}

TEST_CASE("a dump has the history, if one is recorded") {
  const Folder folder;
  const int code = exitCodeOfChild([&] {
    SimRig rig("history:1000,oom_dump:" + folder.text(), simOf(64 * kMiB));
    void* const held = rig.allocator.allocate(40 * kMiB, Stream{});
    rig.allocator.mark("before");
    (void)failureOf(rig.allocator, 40 * kMiB);
    rig.allocator.free(held);
    return 0;
  });
  CHECK(code == 0);
  REQUIRE(folder.files().size() == 1);
  const Recording read = readOne(folder.files()[0]);
  CHECK(read.marks.size() == 1);
  CHECK(read.first_recorded == 0);
  CHECK(read.events.back().kind == EventKind::kFailed);
}

TEST_CASE("a process writes four dumps, and a failing dump hides no failure") {
  const Folder folder;
  const int code = exitCodeOfChild([&] {
    SimRig lost("oom_dump:/nowhere/at/all", simOf(64 * kMiB));
    const std::string text = failureOf(lost.allocator, kGiB);
    if (text.find("out of memory") == text.npos) return 1;
    if (text.find("no dump was written: ") == text.npos) return 2;
    SimRig rig("oom_dump:" + folder.text(), simOf(64 * kMiB));
    for (int i = 0; i < 6; ++i) {
      if (failureOf(rig.allocator, kGiB).find("out of memory") == text.npos) return 3;
    }
    return 0;
  });
  CHECK(code == 0);
  CHECK(folder.files().size() == 3);  // the one that failed counts
}

TEST_CASE("folders are options without commas, and none is the default") {
  CHECK(Options::parse("oom_dump:/a b/c:d").oom_dump == "/a b/c:d");
  CHECK(Options::parse("oom_dump:/a").conf() == "oom_dump:/a");
  CHECK(Options::parse("oom_dump:/a,oom_dump:none").conf().empty());
  CHECK_THROWS_AS(Options::parse("oom_dump:"), OptionError);
  CHECK_THROWS_AS(Options::parse("oom_dump:/a[b]"), OptionError);
  CHECK_THROWS_AS(Options::parse("history:-1"), OptionError);
}

}  // namespace
}  // namespace cistern::test
