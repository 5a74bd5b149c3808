// Wrong frees of blocks that lie in a thread's cache, or on their way to one.
#include <atomic>
#include <barrier>
#include <mutex>

#include "allocator/base/sanitizers.hpp"
#include "allocator/base/thread_number.hpp"
#include "allocator/engine/heap/frees.hpp"
#include "tests/engine/cache/thread_cache_support.hpp"

namespace cistern::test {
namespace {

struct CacheMisuseRig : SimRig {
  explicit CacheMisuseRig(const char* conf = "") : SimRig(conf, roomySim()) {
    allocator.setMisuseHook([this](const Misuse& misuse) {
      const std::lock_guard lock(mutex_);
      reports.push_back(misuse);
    });
  }
  std::vector<Misuse> reports;

 private:
  std::mutex mutex_;
};

[[gnu::noinline]] void firstFreeOfTwo(CachingAllocator& allocator, void* block) {
  allocator.free(block);
  asm volatile("");  // not a tail call: the report names this function's code
}

bool inFirstFreeOfTwo(const Misuse& misuse) {
  return toAddress(misuse.freed_by) - toAddress(reinterpret_cast<void*>(&firstFreeOfTwo)) < 256;
}

}  // namespace

TEST_CASE("a second free of a cached block names the code and the thread of the first",
          "[engine]") {
  CacheMisuseRig rig;
  IdleThread owner, other;
  std::uint32_t numbers[2] = {};
  owner.run([&] { numbers[0] = threadNumber(); });
  other.run([&] { numbers[1] = threadNumber(); });
  for (std::size_t bytes : {std::size_t{512}, 64 * kKiB, 200 * kKiB, 3 * kMiB}) {
    for (IdleThread* first : {&owner, &other}) {
      for (IdleThread* second : {&owner, &other}) {
        INFO(bytes << (first == &other) << (second == &other));
        owner.keep(rig.allocator, 1, bytes, {});
        void* block = owner.allocate(rig.allocator, bytes, {});
        owner.free(rig.allocator, block);
        REQUIRE(owner.allocate(rig.allocator, bytes, {}) == block);  // by way of its cache
        first->run([&] { firstFreeOfTwo(rig.allocator, block); });
        rig.reports.clear();
        second->free(rig.allocator, block);
        REQUIRE(rig.reports.size() == 1);
        CHECK(rig.reports[0].kind == MisuseKind::kDoubleFree);
        CHECK(rig.reports[0].block == toAddress(block));
        CHECK(inFirstFreeOfTwo(rig.reports[0]));
        CHECK(rig.reports[0].freed_on_thread == numbers[first == &other]);
        rig.allocator.audit();
        CHECK(nowOf(rig.allocator, Stat::kAllocation) == 0);
      }
    }
  }
}

TEST_CASE("a pointer into a cached block is a second free's, not another block's", "[engine]") {
  CacheMisuseRig rig;
  void* block = rig.allocator.allocate(64 * kKiB);
  rig.allocator.free(block);
  rig.allocator.free(toPointer(toAddress(block) + 512));
  REQUIRE(rig.reports.size() == 1);
  CHECK(rig.reports[0].kind == MisuseKind::kDoubleFree);
  CHECK_THROWS_AS(rig.allocator.blockSize(block), InvalidArgument);
}

// A debug build finds every second free out. In another, where this is not run by default, the
// owner of a block marks its free by a plain store, so that it and another thread may both find it
// held.
#if defined(CISTERN_DEBUG)
#define CONCURRENT_MISUSE "[engine]"
#else
#define CONCURRENT_MISUSE "[.concurrent_misuse]"
#endif
#if !defined(CISTERN_THREAD_SANITIZER)  // which finds the program's race, as it should

TEST_CASE("of two threads that free one block at once exactly one is told", CONCURRENT_MISUSE) {
  constexpr int kRounds = 2'000;
  for (const int threads : {2, 3}) {  // one of the two allocates, or a third
    CacheMisuseRig rig;
    const Stream stream = rig.stream();
    std::atomic<void*> block{nullptr};
    std::barrier step(threads);
    int wrong = 0;
    const auto play = [&](int index) {
      for (int i = 0; i < kRounds; ++i) {
        const std::size_t bytes = i % 3 == 0 ? 2 * kMiB : 512 * (1 + std::size_t(i) % 200);
        if (index == threads - 1) block = rig.allocator.allocate(bytes, stream);
        step.arrive_and_wait();
        if (index < 2) rig.allocator.free(block);
        step.arrive_and_wait();
        if (index == 0) wrong += rig.reports.size() != std::size_t(i + 1);
      }
    };
    std::vector<std::thread> running;
    for (int index = 0; index < threads; ++index) running.emplace_back(play, index);
    for (std::thread& thread : running) thread.join();
    CHECK(wrong == 0);
    CHECK(rig.reports.size() == kRounds);
    for (const Misuse& misuse : rig.reports) REQUIRE(misuse.kind == MisuseKind::kDoubleFree);
    CHECK(nowOf(rig.allocator, Stat::kAllocation) == 0);
    rig.allocator.audit();
    rig.allocator.emptyCache();
    CHECK(reservedOf(rig.allocator) == 0);
  }
}

#endif

}  // namespace cistern::test
