#include "allocator/base/mutex.hpp"

namespace cistern {
namespace {

// About as long as a heap's lock is held; a sleep and a wake cost a hundred times that.
constexpr int kSpins = 64;

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

// Whoever has slept takes the lock as "waited for": others may be asleep still.
void Mutex::lockHeld() noexcept {
  for (int i = 0; i < kSpins; ++i) {
    if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
    pause();
  }
  while (state_.exchange(kWaitedFor, std::memory_order_acquire) != kFree) {
    state_.wait(kWaitedFor, std::memory_order_relaxed);
  }
}

}  // namespace cistern
