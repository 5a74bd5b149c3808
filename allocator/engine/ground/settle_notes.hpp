// The facts of a stream that one settle remembers for the next.
#pragma once

#include <cstdint>

#include "allocator/engine/ground/long_lived.hpp"

namespace cistern {

/// Not thread-safe.
struct SettleNotes {
  LongLived blocks;             ///< of the stream
  std::uint64_t need = 0;       ///< the most that was needed since the stream's last settle
  std::uint64_t last_over = 0;  ///< bytes that did not fit in the step before
  std::uint64_t slack = 0;      ///< bytes that the device could not serve, as steps have shown
  std::uint32_t misses = 0;     ///< steps in a row that did not fit, and should have
  std::uint32_t quiet = 0;      ///< steps since then, or since it was last asked what may come home
  std::uint32_t wait = 2;       ///< quiet steps before that is asked
  std::uint64_t most_need = 0;  ///< of the quiet steps
  bool came_home = false;       ///< blocks have, and no step has overflowed since
  std::uint32_t trial = 0;      ///< steps that are to show yet whether the last move out pays
  std::uint64_t trial_ns = 0;   ///< the shortest of those so far
  std::uint64_t without_ns = 0;  ///< a step without that: the shorter of the last two
  std::uint64_t last_ns = 0;     ///< the last step
  std::uint32_t pause = 0;       ///< steps for which nothing goes to the host, as it did not pay
  std::uint32_t next_pause = 16;
  std::uint64_t ended_ns = 0;    ///< the host's time at the end of the last settle
  std::uint64_t handed_out = 0;  ///< OverflowCounts::handed_out at the last settle
};

}  // namespace cistern
