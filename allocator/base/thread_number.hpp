// A number for each thread, for reports.
#pragma once

#include <atomic>
#include <cstdint>

namespace cistern {

/// A small number that stays with the calling thread.
inline std::uint32_t threadNumber() noexcept {
  static std::atomic<std::uint32_t> next{1};
  thread_local const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace cistern
