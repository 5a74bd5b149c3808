// The end of a process, in every order. Each in a child process, which ends before the test program
// does.
#include <atomic>
#include <memory>
#include <thread>

#include "allocator/base/process.hpp"
#include "handles/library_memory.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/handles/fake_library.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/slow_build.hpp"

namespace cistern::test {
namespace {

constexpr int kCalledWithoutDriver = 3;

struct ForkTag {
  static constexpr const char* kName = "fork test";
};
/// Ends the process with a failure when a child destroys what the parent has made.
struct ForkLibrary : FakeLibrary<ForkTag> {
  static inline pid_t maker = 0;
  static void destroy(Handle handle) noexcept {
    if (getpid() != maker) _exit(kCalledWithoutDriver);
    FakeLibrary<ForkTag>::destroy(handle);
  }
};
using ForkPool = FakePool<ForkLibrary>;

struct ExitTag {
  static constexpr const char* kName = "exit test";
};
/// Ends the process with a failure when it is called while the driver may be gone.
struct ExitLibrary : FakeLibrary<ExitTag> {
  static void destroy(Handle handle) noexcept {
    if (!driverMayBeCalled()) _exit(kCalledWithoutDriver);
    FakeLibrary<ExitTag>::destroy(handle);
  }
  static std::size_t workspaceBytes(int) { return kMiB; }
  static void setWorkspace(Handle, void*, std::size_t) {}
};
using ExitPool = FakePool<ExitLibrary>;

enum class Part { kPool, kWindow, kDevice };

/// What a program has at namespace scope, given up in an order that the test says.
struct Program {
  Part order[3] = {};
  std::unique_ptr<SimWork> work;
  std::unique_ptr<CachingAllocator> allocator;
  std::unique_ptr<ExitPool> pool;
  std::unique_ptr<ExitPool::PoolWindow> window;

  void populate() {
    work = std::make_unique<SimWork>();
    allocator = std::make_unique<CachingAllocator>(work->device(), optionsOf());
    setWorkspaceAllocator(0, allocator.get());
    pool = std::make_unique<ExitPool>("exit");
    window = pool->newPoolWindow();
    window->reserve(0);
    pool->newPoolWindow()->reserve(1);
    handles::currentHandle<ExitLibrary>()->use();  // this thread's stays with it
    onThread([] { handles::currentHandle<ExitLibrary>()->use(); });
  }
  void give(Part part) {
    switch (part) {
      case Part::kPool:
        return pool.reset();
      case Part::kWindow:
        return window.reset();
      case Part::kDevice:
        setWorkspaceAllocator(0, nullptr);
        allocator.reset();
        return work.reset();
    }
  }
  ~Program() {
    if (!pool) return;
    for (const Part part : order) give(part);
    handles::currentHandle<ExitLibrary>()->use();  // as another static object's destructor might
  }
};

// Made before main, so before anything asks for the process' end: it goes when the driver is gone.
Program with_driver_gone;

constexpr Part kOrders[6][3] = {
    {Part::kPool, Part::kWindow, Part::kDevice}, {Part::kPool, Part::kDevice, Part::kWindow},
    {Part::kWindow, Part::kPool, Part::kDevice}, {Part::kWindow, Part::kDevice, Part::kPool},
    {Part::kDevice, Part::kPool, Part::kWindow}, {Part::kDevice, Part::kWindow, Part::kPool},
};

void exitInOrder(int which, bool driver_gone) {
  Program* program = &with_driver_gone;
  if (!driver_gone) {
    (void)driverMayBeCalled();
    static Program late;
    program = &late;
  }
  std::copy(std::begin(kOrders[which]), std::end(kOrders[which]), program->order);
  program->populate();
}

}  // namespace

TEST_CASE("a thousand processes end well, whatever goes first", "[exit]") {
  constexpr int kProcesses = kSlowBuild ? 240 : 1'000;
  for (int i = 0; i < kProcesses; ++i) {
    const int which = i % 6;
    const bool driver_gone = i % 12 >= 6;
    const int status = statusOfChild([=] { exitInOrder(which, driver_gone); });
    CAPTURE(i, which, driver_gone);
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
  }
}

#if CISTERN_FORKS_AMID_THREADS
TEST_CASE("a child that is forked while other threads reserve handles can exit", "[exit]") {
  const int status = statusOfChild([] {
    ForkLibrary::maker = getpid();
    static ForkPool pool("fork");
    static const auto window = pool.newPoolWindow();
    window->reserve(0);
    pool.newPoolWindow()->reserve(1);
    std::atomic<bool> stopped{false};
    std::thread user([&] {
      while (!stopped) {
        pool.newPoolWindow()->reserve(0);
        ForkPool("another").newPoolWindow()->reserve(0);
      }
    });
    const bool all = allChildrenExit(40);
    stopped = true;
    user.join();
    if (!all) _exit(4);
  });
  CHECK(status == 0);
}

TEST_CASE("a child may ask what handles and workspaces there are, whatever threads did at the fork",
          "[exit]") {
  const int status = statusOfChild([] {
    ForkLibrary::maker = getpid();
    static ForkPool pool("fork");
    std::atomic<bool> stopped{false};
    const auto on_and_on = [&stopped](auto verb) {
      return std::thread([&stopped, verb] {
        while (!stopped) verb();
      });
    };
    std::thread users[] = {on_and_on([] { pool.newPoolWindow()->reserve(0); }),
                           on_and_on([] { pool.newPoolWindow()->reserve(0); }),
                           on_and_on([] { (void)handles::libraryMemory().free(nullptr, {}); }),
                           on_and_on([] { clearWorkspaces(0); })};
    const bool all = allChildrenExit(100, [] {
      if (!handleStatistics().empty()) _exit(5);  // the handles are the parent's
      (void)workspaceStatistics();
      (void)handles::libraryMemory().free(nullptr, {});
    });
    stopped = true;
    for (std::thread& user : users) user.join();
    if (!all) _exit(4);
  });
  CHECK(status == 0);
}
#endif

TEST_CASE("threads may go on using handles while the process ends", "[exit]") {
  for (int i = 0; i < (kSlowBuild ? 6 : 20); ++i) {
    const int status = statusOfChild([] {
      static std::atomic<int> started{0};
      for (int t = 0; t < 4; ++t) {
        std::thread([] {
          for (;;) {
            handles::currentHandle<ExitLibrary>()->use();
            ++started;
          }
        }).detach();
      }
      while (started < 100) std::this_thread::yield();
    });
    REQUIRE(WIFEXITED(status));
    REQUIRE(WEXITSTATUS(status) == 0);
  }
}

TEST_CASE("the free handles of a library that has a destroy are destroyed when main ends",
          "[exit]") {
  const int status = statusOfChild([] {
    // Registered before the first handle is made, so it runs after what was registered then.
    static int destroyed_before = 0;
    std::atexit([] { _exit(ExitLibrary::destroyed - destroyed_before == 1 ? 0 : 1); });
    destroyed_before = ExitLibrary::destroyed;
    onThread([] { handles::currentHandle<ExitLibrary>()->use(); });
  });
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace cistern::test
