// The clock of the played GPU: the machine's, so that its times and the host's can be compared.
#pragma once

#include <cstdint>
#include <ctime>

namespace played {

inline std::uint64_t nowNs() {
  timespec now{};
  (void)clock_gettime(CLOCK_MONOTONIC, &now);
  return std::uint64_t(now.tv_sec) * 1'000'000'000 + std::uint64_t(now.tv_nsec);
}

/// A GPU counts at 100 MHz.
inline std::uint64_t gpuTicks(std::uint64_t nanoseconds) { return nanoseconds / 10; }

}  // namespace played
