#include "allocator/base/mutex.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace cistern {
namespace {

// A holder keeps the lock for well under a microsecond. A sleep and a wake cost tens of them, and
// put everybody behind to sleep as well. So a thread first looks for some tens of microseconds,
// less and less often, so that it does not slow down the holder.
constexpr int kLooks = 40;
constexpr int kYields = 100;  // where there are more threads than processors, the holder may run
constexpr int kMostPauses = 16;
/// A thread that has waited for as long is handed the lock. To hand it on takes a wake-up, during
/// which nobody has the lock, so that this is no rule.
constexpr std::chrono::milliseconds kPatience{1};

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
  const auto starves = [until = std::chrono::steady_clock::now() + kPatience] {
    return std::chrono::steady_clock::now() >= until;
  };
  for (int i = 0; i < kYields && !starves(); ++i) {
    if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
    std::this_thread::yield();
  }
  for (;;) {
    std::uint32_t seen = state_.load(std::memory_order_relaxed);
    if (seen == kFree || seen == kHandedOn) {
      if (state_.compare_exchange_strong(seen, kWaitedFor, std::memory_order_acquire,
                                         std::memory_order_relaxed))
        return noteTaken();
      continue;
    }
    const std::uint32_t mark = starves() ? kStarved : kWaitedFor;
    if (seen < mark && !state_.compare_exchange_strong(seen, mark, std::memory_order_relaxed))
      continue;
    state_.wait(std::max(seen, mark), std::memory_order_relaxed);
  }
}

// The starved thread may have had the lock and given it up by now. Then the next thread takes it
// that has looked as long as one does before it sleeps. Nothing is written once it is given up:
// whoever has it then may destroy it.
void Mutex::giveUpWaitedFor(std::uint32_t state) noexcept {
  state_.store(state == kStarved ? kHandedOn : kFree, std::memory_order_release);
  state_.notify_one();
}

}  // namespace cistern
