// CUDA's handles of streams that no call has made. RMM's logs and PyTorch's snapshots have them.
#pragma once

#include <cstdint>

namespace cistern::trace {

/// cudaStreamLegacy: another name of the default stream.
inline constexpr std::uint64_t kLegacyStream = 1;
/// cudaStreamPerThread: another stream in each thread.
inline constexpr std::uint64_t kPerThreadStream = 2;

}  // namespace cistern::trace
