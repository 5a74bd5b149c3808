// Every library of one vendor, through its getter, on the fake libraries and whatever runtime is
// below.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "cistern/current.hpp"
#include "cistern/handles/library.hpp"
#include "handles/handle_statistics.hpp"
#include "tests/handles/bound/fake_vendor.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/threads.hpp"

namespace cistern::test {
namespace {

template <class Body>
void forEachLibrary(Body body) {
  for (const BoundLibrary& library : boundLibraries()) {
    INFO(library.name);
    body(library);
  }
  CHECK(FakeLibraries::takeFaults() == std::vector<std::string>{});
}

HandleCounts countsOf(const std::string& library, int device) {
  for (const HandleStats& one : handleStatistics()) {
    if (one.library == library && one.device == device) return one.handles;
  }
  return {};
}

constexpr int kLeft = 10, kDestroyed = 11, kNobodyWatched = 12;

/// The environment's variable that names the library of such a process.
constexpr const char* kWhich = "CISTERN_TEST_LIBRARY";

/// The handle of a child process whose fate its exit status tells.
const FakeState* watched = nullptr;

// Registered before main, so it runs after all that is registered when a handle is made.
[[maybe_unused]] const int telling = std::atexit([] {
  if (watched == nullptr) return;
  const auto& gone = FakeLibraries::destroyed;
  _exit(std::find(gone.begin(), gone.end(), watched) == gone.end() ? kLeft : kDestroyed);
});

}  // namespace

TEST_CASE("each library's creation that fails is told in its own words, and the next works",
          "[bound]") {
  forEachLibrary([](const BoundLibrary& library) {
    std::thread([&] {
      const DeviceGuard guard(7);  // of which nobody has a handle yet
      FakeLibraries::failures_to_come = 1;
      std::string what;
      try {
        (void)library.get();
      } catch (const LibraryError& error) {
        what = error.what();
      }
      using Catch::Matchers::ContainsSubstring;
      CHECK_THAT(what, ContainsSubstring(library.name + ": " + library.create + " failed: "));
      CHECK_THAT(what, ContainsSubstring(library.status_name));
      CHECK(countsOf(library.name, 7).created == 0);
      CHECK(library.get() != nullptr);
    }).join();
  });
}

TEST_CASE("each library's handle stays its thread's and follows the current stream", "[bound]") {
  forEachLibrary([](const BoundLibrary& library) {
    FakeState* const mine = library.get();
    const Stream stream = Below::newStream();
    CHECK(mine->stream == 0);
    {
      const StreamGuard guard(stream);
      CHECK(library.get() == mine);
      CHECK(mine->stream == (library.has_stream ? stream.raw : 0));
    }
    CHECK(library.get()->stream == 0);
    Below::destroyStream(stream);
  });
}

TEST_CASE("each library's handle is made on its device, and where a capture allows it", "[bound]") {
  forEachLibrary([](const BoundLibrary& library) {
    CHECK(library.get()->created_on == 0);
    Below::setCurrent(1);  // the program's own call to the runtime
    FakeState* const there = library.get();
    Below::setCurrent(0);
    CHECK(there->created_on == 1);
    CHECK(there->created_relaxed);
    CHECK_FALSE(Below::relaxed());
    const DeviceGuard guard(1);
    CHECK(library.get() == there);
  });
}

TEST_CASE("a thread's handles serve the next one, counted by library and device", "[bound]") {
  forEachLibrary([](const BoundLibrary& library) {
    FakeState *first = nullptr, *second = nullptr;
    std::thread([&] { first = library.get(); }).join();
    const HandleCounts between = countsOf(library.name, 0);
    CHECK(between.free >= 1);
    std::thread([&] { second = library.get(); }).join();
    CHECK(first == second);
    CHECK(countsOf(library.name, 0) == between);
  });
}

TEST_CASE("threads at once compute on handles, devices and streams of their own", "[bound]") {
  forEachLibrary([](const BoundLibrary& library) {
    if (!library.has_stream) return;
    onThreads(4, [&](std::size_t self) {
      for (std::size_t round = 0; round < 24; ++round) {
        const DeviceGuard device(int((self + round) % 3));
        const Stream stream = Below::newStream();
        {
          const StreamGuard guard(stream);
          FakeLibraries::compute(library.get());
        }
        FakeLibraries::compute(library.get());
        Below::destroyStream(stream);  // the handle is on it no more
      }
    });
  });
}

#if CISTERN_FORKS_AMID_THREADS  // the thread sanitizer takes no new thread in a child
TEST_CASE("a child of fork leaves each library's handles to its parent", "[bound]") {
  forEachLibrary([](const BoundLibrary& library) {
    std::thread([&] { (void)library.get(); }).join();  // one is free
    CHECK(allChildrenExit(2, [&] {
      const std::size_t before = FakeLibraries::destroyed.size();
      bool refused = false;
      std::thread([&] { refused = isRefusedInChild([&] { (void)library.get(); }); }).join();
      static std::size_t ended = 0;
      ended = before;
      (void)std::atexit([] {
        if (FakeLibraries::destroyed.size() != ended) _exit(kDestroyed);
      });
      if (!refused) _exit(kLeft);
    }));
    CHECK(library.get() != nullptr);
  });
}
#endif

// Another process: what a child of fork inherits is its parent's, and left alone.
TEST_CASE("exits with a free handle", "[.exits]") {
  const std::string name = std::getenv(kWhich) ? std::getenv(kWhich) : "";
  forEachLibrary([&](const BoundLibrary& library) {
    if (library.name != name) return;
    std::thread([&] { watched = library.get(); }).join();
    std::exit(kNobodyWatched);
  });
}

TEST_CASE("at exit each library's free handles are destroyed or left, as it says", "[bound]") {
  forEachLibrary([](const BoundLibrary& library) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      setenv(kWhich, library.name.c_str(), 1);
      execl("/proc/self/exe", "exits", "[.exits]", nullptr);
      _exit(127);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == (library.destroyed_at_exit ? kDestroyed : kLeft));
  });
}

}  // namespace cistern::test
