// The end of a process. Each in a child process, which ends before the test program does.
#include <memory>

#include "tests/engine/engine_support.hpp"
#include "tests/support/child_process.hpp"

namespace cistern::test {
namespace {

// What a program has at namespace scope. It was made before the first allocator, so it goes only
// when the process is past the point up to which the driver may be called.
struct AtExit {
  ~AtExit() {
    for (void* block : blocks) allocator->free(block);
    allocator.reset();
    if (work && work->device().callCounts() != calls) _exit(3);
  }
  std::unique_ptr<SimWork> work;
  std::unique_ptr<CachingAllocator> allocator;
  std::vector<void*> blocks;  ///< that are freed on the way out
  CallCounts calls{};         ///< to the device by the end of main
} at_exit;

/// Fills it with an allocator that holds blocks, some of them used on a second stream.
void populateAtExit() {
  at_exit.work = std::make_unique<SimWork>();
  Device& device = at_exit.work->device();
  at_exit.allocator = std::make_unique<CachingAllocator>(device, optionsOf());
  CachingAllocator& allocator = *at_exit.allocator;
  const Stream other = device.createStream().orThrow();
  void* pending = nullptr;
  for (std::size_t bytes : {kMiB, 5 * kMiB, 20 * kMiB, 30 * kMiB}) {
    pending = allocator.allocate(bytes);
    allocator.recordStream(pending, other);
  }
  at_exit.blocks.push_back(allocator.allocate(kKiB));
  at_exit.blocks.push_back(allocator.allocate(4 * kMiB));
  allocator.recordStream(at_exit.blocks.back(), other);
  at_exit.work->delay(other, kLongNs);
  allocator.free(pending);
}

}  // namespace

TEST_CASE("at exit an allocator with live blocks goes without a call to the device", "[engine]") {
  const int status = statusOfChild([] {
    populateAtExit();
    at_exit.calls = at_exit.work->device().callCounts();
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a static allocator made late lets the process exit", "[engine]") {
  const int status = statusOfChild([] {
    static SimWork work;
    static CachingAllocator allocator(work.device(), optionsOf());
    const Stream other = work.sim().createStream().orThrow();
    void* held = allocator.allocate(kMiB);
    allocator.recordStream(held, other);
    allocator.free(allocator.allocate(30 * kMiB, other));
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("an allocator that is never destroyed lets the process exit", "[engine]") {
  const int status = statusOfChild([] {
    static auto* const work = new SimWork;
    static auto* const allocator = new CachingAllocator(work->device(), optionsOf());
    (void)allocator->allocate(kMiB);
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("by default a wrong free ends a debug build, and only a debug build", "[engine]") {
  const int status = statusOfChild([] {
    SimWork work;
    CachingAllocator allocator(work.device(), optionsOf());
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
