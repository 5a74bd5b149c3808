// What the CUDA peers share: streams under the runtime's own type, and one way to fail.
#pragma once

#include <stdexcept>
#include <string>

#include <cuda_runtime_api.h>

#include "cistern/types.hpp"

namespace cistern::bench {

inline cudaStream_t handleOf(Stream stream) { return reinterpret_cast<cudaStream_t>(stream.raw); }

/// For what a benchmark cannot go on without.
inline void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(error));
  }
}

/// The block, or null where there is no memory; then the error does not show up in a later call.
/// By reference: the call that sets it stands beside it, and either may be evaluated first.
inline void* blockOrNull(cudaError_t error, void* const& block) {
  if (error == cudaSuccess) return block;
  (void)cudaGetLastError();
  if (error != cudaErrorMemoryAllocation) require(error, "allocating");
  return nullptr;
}

}  // namespace cistern::bench
