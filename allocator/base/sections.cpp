#include "allocator/base/sections.hpp"

#include <thread>

namespace cistern {

// A phase that was empty at some time since has none of those that were inside at the start.
bool Sections::waitForOthers(std::chrono::steady_clock::time_point until) noexcept {
  constexpr unsigned kYields = 16;
  bool left[2] = {false, false};
  for (unsigned looks = 0;; ++looks) {
    std::uint64_t word = word_.load();
    for (const unsigned each : {0U, 1U}) left[each] |= inside(word, each) == 0;
    if (left[0] && left[1]) return true;
    const unsigned now = phase(word);
    if (!left[now] && inside(word, 1 - now) == 0)
      (void)word_.compare_exchange_strong(word, word ^ kPhase);
    if (looks < kYields) {
      std::this_thread::yield();
    } else if (std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } else {
      return false;
    }
  }
}

}  // namespace cistern
