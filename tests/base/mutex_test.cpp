// Builds that check say so when a lock is not held where it is said to be.
#include "allocator/base/mutex.hpp"

#include <thread>

#include "tests/support/child_process.hpp"

namespace cistern::test {

TEST_CASE("what holds a lock may say so, however it came to have it", "[base]") {
  Mutex mutex;
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

#if defined(CISTERN_DEBUG) || defined(CISTERN_AUDIT_BUILD)
TEST_CASE("a lock that nobody holds, or another thread, is not taken for held", "[base]") {
  CHECK(WIFSIGNALED(statusOfChild([] {
    const Mutex mutex;
    mutex.assertHeld();
  })));
  CHECK(WIFSIGNALED(statusOfChild([] {
    Mutex mutex;
    const MutexLock lock(mutex);
    std::thread([&] { mutex.assertHeld(); }).join();
  })));
}
#endif

}  // namespace cistern::test
