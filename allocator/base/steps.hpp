// How many steps searches have taken whose length can grow with what the program has. Tests compare
// the count at two sizes: a time would say too little.
#pragma once

#include <atomic>
#include <cstdint>

namespace cistern {

/// In all allocators of the process.
inline std::atomic<std::uint64_t> steps_searched{0};

/// A search has taken so many steps. It adds them at its end, at once.
inline void noteSteps(std::uint64_t steps) noexcept {
  steps_searched.fetch_add(steps, std::memory_order_relaxed);
}

}  // namespace cistern
