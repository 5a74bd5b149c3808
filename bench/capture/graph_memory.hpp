// What the driver holds for the memory nodes of graphs.
#pragma once

#include <cstdint>

namespace cistern::bench {

/// The most bytes it has held since the last call of forgetGraphMemory.
std::uint64_t graphMemoryPeak(int device);
/// Gives back what no graph uses.
void forgetGraphMemory(int device);

}  // namespace cistern::bench
