// The one call that bench_launch_latency times.
#pragma once

#include <cstdint>

namespace cistern::bench {

/// Launches a kernel that does nothing on a cudaStream_t. False when CUDA refuses.
bool launchNothing(std::uintptr_t stream);

}  // namespace cistern::bench
