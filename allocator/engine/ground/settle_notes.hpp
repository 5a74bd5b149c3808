// The facts of a stream that one settle remembers for the next.
#pragma once

#include <cstdint>

#include "allocator/engine/ground/long_lived.hpp"

namespace cistern {

/// Not thread-safe.
struct SettleNotes {
  LongLived blocks;              ///< of the stream
  std::uint64_t last_over = 0;   ///< bytes that did not fit in the step before
  std::uint32_t quiet = 0;       ///< steps since then, or since blocks came home
  std::uint32_t wait = 2;        ///< quiet steps before blocks come home
  bool came_home = false;        ///< blocks have, and no step has overflowed since
  std::uint64_t handed_out = 0;  ///< OverflowCounts::handed_out at the last settle
};

}  // namespace cistern
