// The simulated device's row in the table of backends.
#pragma once

#include "allocator/device/backends.hpp"

namespace cistern::sim {

inline constexpr int kDevices = 8;  ///< as many ordinals as SimConfig takes

/// Always there: every build and every machine has it.
extern const Backend kTableEntry;

}  // namespace cistern::sim
