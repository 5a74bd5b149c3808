// Children that are forked while other threads allocate, and threads that go on while the process
// exits. Not under the sanitizers: of the threads that vanish, they keep what a child cannot use.
#include <atomic>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "allocator/base/process.hpp"
#include "cistern/error.hpp"
#include "tests/engine/engine_support.hpp"
#include "tests/support/child_process.hpp"

#if CISTERN_FORKS_AMID_THREADS

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

namespace {

// What no cache serves is refused, and so is all that needs a lock.
bool refusesAll(CachingAllocator& of, void* held, Stream own, const BlockExport& exported) {
  return isRefusedInChild([&] { (void)of.allocate(64 * kMiB, own); }) &&
         isRefusedInChild([&] { (void)of.allocate(4096, Stream{12345}); }) &&
         isRefusedInChild([&] { of.recordStream(held, Stream{}); }) &&
         isRefusedInChild([&] { of.registerStream(own); }) &&
         isRefusedInChild([&] { (void)of.poolFor(own); }) &&
         isRefusedInChild([&] { (void)of.exportBlock(held); }) &&
         isRefusedInChild([&] { (void)of.openImport(exported.pages); }) &&
         isRefusedInChild([&] { of.registerReclaimCallback([] { return false; }); }) &&
         isRefusedInChild([&] { of.attachPoolReleasedObserver([](MempoolId_t) {}); }) &&
         isRefusedInChild([&] { of.attachOutOfMemoryObserver([](const auto&) {}); }) &&
         isRefusedInChild([&] { of.detach({1}); }) &&
         isRefusedInChild([&] { of.setMisuseHook({}); }) &&
         isRefusedInChild([&] { (void)of.memoryStats(); }) &&
         isRefusedInChild([&] { of.resetPeakStats(); }) &&
         isRefusedInChild([&] { of.resetAccumulatedStats(); }) &&
         isRefusedInChild([&] { (void)of.cacheInfo(); }) &&
         isRefusedInChild([&] { (void)of.snapshot(); }) &&
         isRefusedInChild([&] { of.recordMemoryEvents(true); }) &&
         isRefusedInChild([&] { (void)of.takeMemoryEvents(); }) &&
         isRefusedInChild([&] { (void)of.getMemoryInfo(); }) &&
         isRefusedInChild([&] { of.enablePeerAccess(1); }) &&
         isRefusedInChild([&] { (void)of.blockSize(held); }) &&
         isRefusedInChild([&] { (void)of.getBaseAllocation(held); }) &&
         isRefusedInChild([&] { of.audit(); });
}

}  // namespace

TEST_CASE("in a child of fork each verb of the parent's allocator works or throws at once",
          "[engine]") {
  for (const char* const conf : {"background_thread:true", "backing:segments"}) {
    CAPTURE(conf);
    const int status = statusOfChild([conf] {
      static SimWork work;
      static CachingAllocator allocator(work.device(), Options::parse(conf));
      const Stream own = work.device().createStream().orThrow();
      void* const held = allocator.allocate(5 * kMiB, own);
      const auto exported = allocator.exportBlock(held);
      allocator.free(allocator.allocate(4096, own));
      Churners churners(allocator, work.device());
      const bool all = allChildrenExit(kChildren, [&] {
        // A hit, unless another thread was looking at the cache; more of them than are counted
        // without the others' knowledge.
        (void)isRefusedInChild([&] {
          for (int i = 0; i < 1000; ++i) allocator.free(allocator.allocate(4096, own));
        });
        if (!refusesAll(allocator, held, own, *exported)) _exit(3);
        if (!allocator.owns(held) || allocator.owns(&work)) _exit(4);
        allocator.forgetStream(own);
        allocator.emptyCache();
        allocator.free(held);
        allocator.free(held);
        std::thread([&] { allocator.free(held); }).join();
      });
      churners.stop();
      if (!all) _exit(3);
      allocator.free(held);
    });
    CHECK(status == 0);
  }
}

TEST_CASE("a callback that forks lets the child end: the request is refused there", "[engine]") {
  const int status = statusOfChild([] {
    static SimWork work;
    static CachingAllocator allocator(work.device(), optionsOf());
    allocator.setLimit(256 * kMiB);  // the threads always have enough
    Churners churners(allocator, work.device());
    pid_t child = -1;
    allocator.registerReclaimCallback([&](const MemoryShortage& shortage) {
      if (shortage.requested != kGiB || shortage.attempt > 1) return false;
      child = fork();
      if (child == 0) alarm(20);
      return true;
    });
    try {
      (void)allocator.allocate(kGiB, Stream{});
    } catch (const OutOfMemory&) {
      if (child == 0) _exit(5);
    } catch (const Error&) {
      if (child == 0) std::exit(0);
      throw;
    }
    int ended = 1;
    const bool waited = child > 0 && waitpid(child, &ended, 0) == child;
    churners.stop();
    if (!waited || ended != 0) _exit(3);
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
