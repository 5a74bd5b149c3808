#include "allocator/base/biased_lock.hpp"

#include <chrono>
#include <thread>

#if defined(__linux__)
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "allocator/base/check.hpp"

namespace cistern {
namespace {

long membarrier([[maybe_unused]] int command) noexcept {
#if defined(__linux__)
  return ::syscall(SYS_membarrier, command, 0, 0);
#else
  return -1;
#endif
}

#if defined(__linux__)
constexpr int kRegister = MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
constexpr int kBarrier = MEMBARRIER_CMD_PRIVATE_EXPEDITED;
#else
constexpr int kRegister = 0, kBarrier = 0;
#endif

/// Whether the kernel makes other threads pass a barrier. Queried once; a process stays registered.
bool kernelHelps() noexcept {
  static const bool helps = membarrier(kRegister) == 0;
  return helps;
}

}  // namespace

bool BiasedLock::available() noexcept { return kOwnerPays || kernelHelps(); }

void BiasedLock::barrier() noexcept {
  if (kOwnerPays) return;
  CISTERN_CHECK(membarrier(kBarrier) == 0);
}

// The owner holds it for a few dozen instructions. It takes longer only when it is not running. If
// it waits because this thread has priority, yielding would not help it.
void BiasedLock::awaitOwner() const noexcept {
  constexpr int kLooks = 100, kYields = 1000;
  for (int looks = 0; held_.load(std::memory_order_seq_cst) != 0; ++looks) {
    if (looks < kLooks) continue;
    if (looks < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

}  // namespace cistern
