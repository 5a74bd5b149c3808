// The clocks that a process counts with; the reader of its counts uses the same.
#pragma once

#include <chrono>
#include <cstdint>

namespace cistern::preload {

inline std::uint64_t nanosecondsNow() noexcept {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

/// A clock that costs next to nothing to look at; how long a tick is, the reader of the record
/// tells.
inline std::uint64_t ticksNow() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  return nanosecondsNow();
#endif
}

}  // namespace cistern::preload
