// A history in a file, which a thread in the background writes.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/history/history_support.hpp"
#include "tests/support/skipped.hpp"

namespace cistern::test {
namespace {

using recording::EventKind;
using recording::Recording;

HistorySettings into(const TemporaryFile& file) {
  HistorySettings settings;
  settings.file = file.path().string();
  settings.name = "a program";
  return settings;
}

void allocateAndFree(CachingAllocator& allocator, int times) {
  for (int i = 0; i < times; ++i)
    allocator.free(allocator.allocate(std::size_t(1000 + i), Stream{}));
}

/// Runs `body` in a child of fork, which ends by `end`. Returns how it ended.
int inChild(const auto& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

TEST_CASE("a file has all events, after what lived before") {
  const TemporaryFile file("whole.trace");
  SimRig rig;
  void* const before = rig.allocator.allocate(3 * kMiB, Stream{});
  rig.allocator.recordHistory(into(file));
  allocateAndFree(rig.allocator, 10'000);
  const LabelScope label("late");
  void* const kept = rig.allocator.allocate(100, Stream{});
  rig.allocator.mark("the end");
  const Picture now = pictureOf(rig.allocator.snapshot());
  rig.allocator.stopHistory();
  const Recording read = readOne(file.path());
  CHECK(read.name == "a program");
  CHECK(read.allocations == 10'002);
  CHECK(read.marks == std::vector<std::string>{"the end"});
  CHECK(read.labels.back().name == "late");
  CHECK(read.notes.empty());
  CHECK(pictureOf(read) == now);
  rig.allocator.free(before);
  rig.allocator.free(kept);
}

TEST_CASE("an allocator that goes ends its file") {
  const TemporaryFile file("gone.trace");
  {
    SimRig rig;
    rig.allocator.recordHistory(into(file));
    allocateAndFree(rig.allocator, 10);
  }
  CHECK(readOne(file.path()).allocations == 10);
}

TEST_CASE("a file can be read while it is written, and after a crash") {
  const TemporaryFile file("crash.trace");
  const int status = inChild([&] {
    SimRig rig;
    rig.allocator.recordHistory(into(file));
    allocateAndFree(rig.allocator, 1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(600));
    ::raise(SIGKILL);
  });
  CHECK(WIFSIGNALED(status));
  CHECK(readOne(file.path()).allocations == 1000);
}

TEST_CASE("the end of the process ends a file of an allocator that stays") {
  const TemporaryFile file("exit.trace");
  (void)inChild([&] {
    auto* const rig = new SimRig;
    rig->allocator.recordHistory(into(file));
    allocateAndFree(rig->allocator, 1000);
    std::exit(0);  // NOLINT: the handlers of the exit are what is tested
  });
  CHECK(readOne(file.path()).allocations == 1000);
}

TEST_CASE("a child of fork writes nothing, and ends as it would") {
  if (!CISTERN_FORKS_AMID_THREADS) return skipped("a sanitizer's locks may hang the child");
  const TemporaryFile file("fork.trace");
  SimRig rig;
  rig.allocator.recordHistory(into(file));
  allocateAndFree(rig.allocator, 100);
  const int status = inChild([&] {
    const TemporaryFile own("child.trace");
    {
      SimRig mine;
      mine.allocator.recordHistory(into(own));
      allocateAndFree(mine.allocator, 10);
    }
    ::_exit(readOne(own.path()).allocations == 10 ? 3 : 4);
  });
  CHECK(WEXITSTATUS(status) == 3);
  rig.allocator.stopHistory();
  CHECK(readOne(file.path()).allocations == 100);
}

TEST_CASE("a disk that is too slow loses events, and the file says how many") {
  const TemporaryFile file("slow.fifo");
  REQUIRE(::mkfifo(file.path().c_str(), 0600) == 0);
  std::string text;
  std::thread reader([&] {
    std::ifstream from(file.path());
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    text.assign(std::istreambuf_iterator<char>(from), {});
  });
  SimRig rig;
  HistorySettings settings = into(file);
  settings.most_events = 1000;
  rig.allocator.recordHistory(settings);
  allocateAndFree(rig.allocator, 50'000);
  void* const kept = rig.allocator.allocate(100, Stream{});
  rig.allocator.stopHistory();
  reader.join();
  const TemporaryFile copy("slow.trace", text);
  const Recording read = readOne(copy.path());
  CHECK(read.allocations < 50'000);
  REQUIRE_FALSE(read.notes.empty());
  CHECK(read.notes[0].find("events were lost here") != std::string::npos);
  rig.allocator.free(kept);
}

TEST_CASE("a file that cannot grow is said not to be whole, and holds whole lines") {
  const TemporaryFile file("full.trace");
  const int status = inChild([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit most{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &most);
    SimRig rig;
    rig.allocator.recordHistory(into(file));
    allocateAndFree(rig.allocator, 50'000);
    try {
      rig.allocator.stopHistory();
    } catch (const Error& error) {
      ::_exit(std::string(error.what()).find("is not whole: File too large") != std::string::npos
                  ? 3
                  : 4);
    }
    ::_exit(5);
  });
  CHECK(WEXITSTATUS(status) == 3);
  CHECK(readOne(file.path()).allocations > 100);
}

TEST_CASE("a file that cannot be made leaves the history off") {
  SimRig rig;
  HistorySettings settings;
  settings.file = "/nowhere/at/all.trace";
  CHECK_THROWS_WITH(rig.allocator.recordHistory(settings),
                    Catch::Matchers::ContainsSubstring("/nowhere/at/all.trace"));
  CHECK_FALSE(rig.allocator.recordsHistory());
  rig.allocator.free(rig.allocator.allocate(100, Stream{}));
}

TEST_CASE("a file that another history is written to is refused, and stays whole") {
  const TemporaryFile file("shared.trace");
  HistorySettings settings;
  settings.file = file.path().string();
  SimRig first, second;
  first.allocator.recordHistory(settings);
  first.allocator.free(first.allocator.allocate(1000, Stream{}));
  CHECK_THROWS_WITH(second.allocator.recordHistory(settings),
                    Catch::Matchers::ContainsSubstring("another one is written there"));
  CHECK_FALSE(second.allocator.recordsHistory());
  first.allocator.stopHistory();
  CHECK(readOne(file.path()).allocations == 1);
  second.allocator.recordHistory(settings);
  second.allocator.stopHistory();
}

TEST_CASE("a file that goes while it is written is said not to be whole") {
  const TemporaryFile file("gone.trace");
  HistorySettings settings;
  settings.file = file.path().string();
  SimRig rig;
  rig.allocator.recordHistory(settings);
  SECTION("removed") { std::filesystem::remove(file.path()); }
  SECTION("replaced by a dump") { rig.allocator.dumpHistory(settings.file); }
  CHECK_THROWS_WITH(rig.allocator.stopHistory(),
                    Catch::Matchers::ContainsSubstring("it was removed, or another file"));
}

}  // namespace
}  // namespace cistern::test
