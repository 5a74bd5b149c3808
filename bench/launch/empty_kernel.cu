// A kernel that does nothing: what is timed is its launch.
#include <cstdint>

#include "bench/launch/empty_kernel.hpp"

namespace cistern::bench {
namespace {

__global__ void nothing() {}

}  // namespace

bool launchNothing(std::uintptr_t stream) {
  nothing<<<1, 1, 0, reinterpret_cast<cudaStream_t>(stream)>>>();
  return cudaGetLastError() == cudaSuccess;
}

}  // namespace cistern::bench
