// CUDA's runtime: the one that the program is linked with, or the one that it loads. The build says
// which (CISTERN_CUDA_RUNTIME).
#pragma once

#include <string>

#if defined(CISTERN_RUNTIME_LOADED)

#include "allocator/device/vendor/loaded_runtime.hpp"

#else

#include <fmt/format.h>

#include "allocator/device/vendor/cuda_functions.hpp"

namespace cistern::cuda {

// As loaded_runtime.hpp explains them.

inline const char* noDeviceText() {
  return "no usable NVIDIA GPU: the driver (libcuda.so.1) is missing, is older than this build "
         "needs, or shows no device to this process";
}
inline int errorCode(cudaError_t error) { return error; }
inline const char* errorName(cudaError_t error) { return cudaGetErrorName(error); }
inline std::string errorText(cudaError_t error) { return cudaGetErrorString(error); }
inline std::string runtimeText() {
  int version = 0;
  if (cudaRuntimeGetVersion(&version) != cudaSuccess) return {};
  return fmt::format("{}.{}, linked", version / 1000, version % 1000 / 10);
}

}  // namespace cistern::cuda

#endif
