// The end of a process. Each in a child process, which ends before the test program does.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/engine/engine_support.hpp"

namespace cistern::test {
namespace {

/// Runs `body` in a child process; what waitpid says of it.
template <class Body>
int statusOfChild(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(4);
    body();
    std::exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

/// Destroyed after the allocator and before the device: sees whether the device was called on the
/// way out.
struct CallsAtExit {
  explicit CallsAtExit(Device& device) : device_(device) {}
  ~CallsAtExit() {
    if (device_.callCounts() != before) _exit(3);
  }
  Device& device_;
  CallCounts before{};
};

}  // namespace

TEST_CASE("a static allocator with live blocks lets the process exit, without a device call",
          "[engine]") {
  const int status = statusOfChild([] {
    static SimWork work;
    static CallsAtExit calls(work.device());
    static CachingAllocator allocator(work.device(), Options{});
    const Stream other = work.sim().createStream().orThrow();
    void* held = allocator.allocate(kMiB);
    void* pending = allocator.allocate(20 * kMiB);
    for (void* block : {held, pending}) allocator.recordStream(block, other);
    work.delay(other, kLongNs);
    allocator.free(pending);
    allocator.free(allocator.allocate(30 * kMiB, other));
    calls.before = work.device().callCounts();
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("blocks may be freed while the process exits", "[engine]") {
  const int status = statusOfChild([] {
    struct Owner {
      ~Owner() {
        for (void* block : blocks) allocator->free(block);
      }
      CachingAllocator* allocator = nullptr;
      std::vector<void*> blocks;
    };
    static SimWork work;
    static CallsAtExit calls(work.device());
    static CachingAllocator allocator(work.device(), Options{});
    static Owner owner;
    const Stream other = work.sim().createStream().orThrow();
    owner.allocator = &allocator;
    owner.blocks = {allocator.allocate(kMiB), allocator.allocate(20 * kMiB)};
    allocator.recordStream(owner.blocks.back(), other);
    calls.before = work.device().callCounts();
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("an allocator that is never destroyed lets the process exit", "[engine]") {
  const int status = statusOfChild([] {
    static auto* const work = new SimWork;
    static auto* const allocator = new CachingAllocator(work->device(), Options{});
    (void)allocator->allocate(kMiB);
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("by default a wrong free ends a debug build, and only a debug build", "[engine]") {
  const int status = statusOfChild([] {
    SimWork work;
    CachingAllocator allocator(work.device(), Options{});
    int local = 0;
    allocator.free(&local);
  });
#if defined(CISTERN_DEBUG)
  CHECK(WIFSIGNALED(status));
#else
  CHECK(WIFEXITED(status));
#endif
}

}  // namespace cistern::test
