// Builds that check say so when a lock is not held where it is said to be, or is taken out of
// order.
#include "allocator/base/mutex.hpp"

#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "tests/support/child_process.hpp"

namespace cistern::test {
namespace {

/// A lock that the thread which forked holds is free in the child, and may be given up there.
void restoreHeld() CISTERN_NO_TSA {
  Mutex mutex(LockRank::kSharedAllocators);
  mutex.lock();
  CHECK(allChildrenExit(1, [&]() CISTERN_NO_TSA {
    mutex.restoreInChild();
    mutex.lock();
    mutex.unlock();
    mutex.unlock();
    Mutex outer(LockRank::kCPool);
    const MutexLock none_is_held(outer);
  }));
  mutex.unlock();
}

/// A thread that waits gets the lock, though its holder gives it up for less than a wake-up takes.
void handOn() CISTERN_NO_TSA {
  constexpr int kMost = 30'000;  // it may be long before the waiter runs
  Mutex mutex(LockRank::kHeap);
  mutex.lock();
  std::thread waiter([&mutex] { const MutexLock lock(mutex); });
  bool held = true;
  for (int times = 0; held && times < kMost; ++times) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    mutex.unlock();
    held = mutex.try_lock();
  }
  CHECK_FALSE(held);
  if (held) mutex.unlock();
  waiter.join();
}

}  // namespace

TEST_CASE("what holds a lock may say so, however it came to have it", "[base]") {
  Mutex mutex(LockRank::kHeap);
  {
    const MutexLock lock(mutex);
    mutex.assertHeld();
  }
  REQUIRE(mutex.try_lock());
  mutex.assertHeld();
  mutex.unlock();
  mutex.takeForFork();
  mutex.assertHeld();
  mutex.releaseAfterFork();
}

TEST_CASE("locks are taken in the order of their ranks, and given up in any", "[base]") {
  Mutex pages(LockRank::kPages), heap(LockRank::kHeap), totals(LockRank::kTotals);
  for (int times = 0; times < 2; ++times) {
    std::unique_lock first(pages), second(heap);
    first.unlock();
    const std::unique_lock last(totals);
    second.unlock();
  }
  {
    const RankedScope scope(LockRank::kPages);
    const MutexLock lock(heap);
  }
  const MutexLock again(pages);
}

TEST_CASE("several heaps' locks are held under the one for that", "[base]") {
  Mutex several(LockRank::kSeveralHeaps), a(LockRank::kHeap), b(LockRank::kHeap);
  const MutexLock one_thread(several);
  const MutexLock first(a);
  const MutexLock second(b);
}

TEST_CASE("a thread that waits for long gets the lock from one that takes it again at once",
          "[base]") {
  handOn();
}

TEST_CASE("a thread that only tries to take a lock, or forks, takes it out of order", "[base]") {
  Mutex pages(LockRank::kPages), heap(LockRank::kHeap);
  const MutexLock lock(heap);
  REQUIRE(pages.try_lock());
  pages.assertHeld();
  pages.unlock();
  pages.takeForFork();
  pages.releaseAfterFork();
}

TEST_CASE("a child of fork has a lock again that its parent held", "[base]") { restoreHeld(); }

#if defined(CISTERN_DEBUG) || defined(CISTERN_AUDIT_BUILD)
namespace {

/// What the body says on stderr in a child process; empty unless it aborts.
template <class Body>
std::string lastWords(Body body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const int status = statusOfChild([&] {
    dup2(ends[1], STDERR_FILENO);
    (void)std::setvbuf(stderr, nullptr, _IONBF, 0);
    body();
  });
  close(ends[1]);
  std::string said(4096, '\0');
  const ssize_t bytes = read(ends[0], said.data(), said.size());
  close(ends[0]);
  said.resize(bytes > 0 ? std::size_t(bytes) : 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? said : "";
}

/// The same of a thread that takes one lock while it holds another.
std::string takes(LockRank second, LockRank first) {
  return lastWords([=] {
    Mutex outer(first), inner(second);
    const MutexLock holds(outer);
    const MutexLock lock(inner);
  });
}

bool names(const std::string& text, const std::string& wanted, const std::string& held) {
  const std::size_t at = text.find("takes " + wanted);
  return at != std::string::npos && text.find("while it holds " + held) > at &&
         text.find("while it holds " + held) != std::string::npos;
}

}  // namespace

TEST_CASE("a lock that nobody holds, or another thread, is not taken for held", "[base]") {
  CHECK(WIFSIGNALED(statusOfChild([] {
    const Mutex mutex(LockRank::kHeap);
    mutex.assertHeld();
  })));
  CHECK(WIFSIGNALED(statusOfChild([] {
    Mutex mutex(LockRank::kHeap);
    const MutexLock lock(mutex);
    std::thread([&] { mutex.assertHeld(); }).join();
  })));
}

TEST_CASE("a thread that takes locks out of order ends, naming both", "[base]") {
  CHECK(takes(LockRank::kHeap, LockRank::kPages).empty());
  CHECK(names(takes(LockRank::kPages, LockRank::kHeap), "PageBacking::mutex_", "Heap::mutex"));
  CHECK(names(takes(LockRank::kHeap, LockRank::kHeap), "Heap::mutex", "Heap::mutex"));
  CHECK(names(takes(LockRank::kPages, LockRank::kPages), "PageBacking::mutex_",
              "PageBacking::mutex_"));
}

TEST_CASE("a thread that takes a lock under a leaf ends, naming both", "[base]") {
  CHECK(takes(LockRank::kTotals, LockRank::kHeap).empty());
  CHECK(names(takes(LockRank::kHeapList, LockRank::kTotals), "HeapTable::list_mutex_",
              "Totals::mutex_"));
  CHECK(names(takes(LockRank::kHeap, LockRank::kTotals), "Heap::mutex", "Totals::mutex_"));
}

TEST_CASE("a lock that a thread has tried to take counts for those it takes after", "[base]") {
  CHECK(names(lastWords([] {
                Mutex pages(LockRank::kPages), heap(LockRank::kHeap);
                if (!heap.try_lock()) return;
                const MutexUnlock unlock(heap);
                const MutexLock lock(pages);
              }),
              "PageBacking::mutex_", "Heap::mutex"));
}

TEST_CASE("what a thread holds after it has given up an outer lock still counts", "[base]") {
  CHECK(names(lastWords([] {
                Mutex pages(LockRank::kPages), heap(LockRank::kHeap), table(LockRank::kPoolTable);
                std::unique_lock first(pages);
                const std::unique_lock second(heap);
                first.unlock();
                const std::unique_lock third(table);
              }),
              "PoolTable::mutex_", "Heap::mutex"));
}

TEST_CASE("what another thread holds does not count", "[base]") {
  Mutex pages(LockRank::kPages), heap(LockRank::kHeap);
  const MutexLock lock(heap);
  std::thread([&] { const MutexLock other(pages); }).join();
}
#else
static_assert(sizeof(Mutex) == sizeof(std::uint32_t), "a rank takes no room");

TEST_CASE("a build that is fast does not look at the order of locks", "[base]") {
  Mutex totals(LockRank::kTotals), pages(LockRank::kPages), other(LockRank::kPages);
  const MutexLock leaf(totals);
  const MutexLock lock(pages);
  const MutexLock equal(other);
}
#endif

}  // namespace cistern::test
