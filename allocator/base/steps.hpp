// The number of steps in searches whose length can grow with the program's memory. Tests compare
// the count at two sizes: a time would tell too little.
#pragma once

#include <atomic>
#include <cstdint>

namespace cistern {

/// In all allocators of the process.
inline std::atomic<std::uint64_t> steps_searched{0};

/// A search has taken that many steps. It adds them all at its end.
inline void noteSteps(std::uint64_t steps) noexcept {
  steps_searched.fetch_add(steps, std::memory_order_relaxed);
}

}  // namespace cistern
