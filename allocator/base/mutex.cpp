#include "allocator/base/mutex.hpp"

#include <thread>

namespace cistern {
namespace {

// A holder keeps the lock for well under a microsecond. A sleep and a wake cost tens of them, and
// put everybody behind to sleep as well. So a thread first looks for some tens of microseconds,
// less and less often, so that it does not slow down the holder.
constexpr int kLooks = 40;
constexpr int kYields = 100;  // where there are more threads than processors, the holder may run
constexpr int kMostPauses = 16;

inline void pause(int times) {
  for (int i = 0; i < times; ++i) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
}

}  // namespace

#if defined(CISTERN_DEBUG) || defined(CISTERN_AUDIT_BUILD)
const void* Mutex::thisThread() noexcept {
  static constinit thread_local char mark = 0;
  return &mark;
}
#endif

// A thread that has slept takes the lock as "waited for": others may still be asleep. The analysis
// is off, as it would take the result of try_lock() for a lock that is never released.
void Mutex::lockHeld() noexcept CISTERN_NO_TSA {
  for (int i = 0, pauses = 1; i < kLooks; ++i) {
    if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
    pause(pauses);
    pauses = pauses < kMostPauses ? pauses * 2 : kMostPauses;
  }
  for (int i = 0; i < kYields; ++i) {
    if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
    std::this_thread::yield();
  }
  while (state_.exchange(kWaitedFor, std::memory_order_acquire) != kFree) {
    state_.wait(kWaitedFor, std::memory_order_relaxed);
  }
  noteTaken();
}

}  // namespace cistern
