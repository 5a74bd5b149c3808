// The kernels behind CUDA test work, as plain functions: the only thing that nvcc compiles.
// Each queues one kernel on `stream` and returns whether that worked; none waits.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace cistern::test {

/// Word i of [words, words + count) becomes seed + i.
cudaError_t launchFill(cudaStream_t stream, std::uint32_t* words, std::size_t count,
                       std::uint32_t seed);
/// Adds the number of words that are not seed + i to *wrong, which is device memory.
cudaError_t launchVerify(cudaStream_t stream, const std::uint32_t* words, std::size_t count,
                         std::uint32_t seed, unsigned long long* wrong);
/// One thread that is busy for at least that long.
cudaError_t launchDelay(cudaStream_t stream, std::uint64_t nanoseconds);

}  // namespace cistern::test
