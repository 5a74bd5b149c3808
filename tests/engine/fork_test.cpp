// Children that are forked while other threads allocate, and threads that go on while the process
// exits. Not under the sanitizers: of the threads that vanish, they keep what a child cannot use.
#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "allocator/base/process.hpp"
#include "allocator/base/sanitizers.hpp"
#include "cistern/error.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/support/child_process.hpp"

#if !defined(CISTERN_ADDRESS_SANITIZER) && !defined(CISTERN_THREAD_SANITIZER)

namespace cistern::test {
namespace {

constexpr int kChildren = 40, kThreads = 3;

/// A bit of everything: hits, misses, pages that move, blocks that wait for another stream.
void churn(CachingAllocator& allocator, Stream own, Stream other, int round) {
  void* const small = allocator.allocate(4096, own);
  void* const large = allocator.allocate(std::size_t(1 + round % 7) * 3 * kMiB, own);
  allocator.recordStream(large, other);
  allocator.free(small);
  allocator.free(large);
  if (round % 16 == 0) allocator.emptyCache();
}

/// Threads that allocate until stop(); each has allocated before this returns.
class Churners {
 public:
  Churners(CachingAllocator& allocator, Device& device) {
    const Stream other = device.createStream().orThrow();
    std::latch begun(kThreads);
    for (int t = 0; t < kThreads; ++t) {
      const Stream own = device.createStream().orThrow();
      threads_.emplace_back([&allocator, &begun, own, other, this] {
        churn(allocator, own, other, 0);
        begun.count_down();
        try {
          for (int round = 1; !stopped_; ++round) churn(allocator, own, other, round);
        } catch (const OutOfMemory&) {
          if (driverMayBeCalled()) throw;  // at exit what the other stream uses stays away
        }
      });
    }
    begun.wait();
  }
  void stop() {
    stopped_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  void detach() {
    for (std::thread& thread : threads_) thread.detach();
  }

 private:
  std::atomic<bool> stopped_{false};
  std::vector<std::thread> threads_;
};

}  // namespace

TEST_CASE("a child that is forked while other threads allocate can exit", "[engine]") {
  const int status = statusOfChild([] {
    static SimWork work;
    static CachingAllocator allocator(work.device(), optionsOf());
    Churners churners(allocator, work.device());
    const bool all = allChildrenExit(kChildren);
    churners.stop();
    if (!all) _exit(3);
  });
  CHECK(status == 0);
}

TEST_CASE("a child of fork can make an allocator of its own; its parent's says what it is",
          "[engine]") {
  const int status = statusOfChild([] {
    static SimWork work;
    static CachingAllocator allocator(work.device(), optionsOf());
    Churners churners(allocator, work.device());
    const int child = statusOfChild([] {
      alarm(20);
      SimWork own_work;
      CachingAllocator own(own_work.device(), optionsOf());
      std::thread([&] { own.free(own.allocate(kMiB)); }).join();
      own.free(own.allocate(5 * kMiB));
      try {
        (void)allocator.allocate(100 * kMiB, Stream{12345});
        _exit(4);
      } catch (const InvalidArgument&) {
        _exit(5);
      } catch (const Error&) {
      }
    });
    churners.stop();
    if (child != 0) _exit(3);
  });
  CHECK(status == 0);
}

TEST_CASE("threads may go on while the process exits, with an allocator that is never destroyed",
          "[engine]") {
  for (int i = 0; i < 10; ++i) {
    const int status = statusOfChild([] {
      auto* const work = new SimWork;
      auto* const allocator = new CachingAllocator(work->device(), optionsOf());
      (new Churners(*allocator, work->device()))->detach();
    });
    CHECK(status == 0);
  }
}

}  // namespace cistern::test

#endif
