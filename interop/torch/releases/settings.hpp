// The settings of PyTorch's (PYTORCH_ALLOC_CONF) that Cistern keeps to. A release that lacks one
// has PyTorch's default.
#pragma once

#include <c10/cuda/CUDAAllocatorConfig.h>

#include "torch_release.hpp"

namespace cistern_torch {

/// The part of a device's memory that this process may take; 1: all of it. Since 2.10.
inline double fractionOfSettings() {
#if CISTERN_TORCH >= 210
  return theirs::CUDAAllocatorConfig::per_process_memory_fraction();
#else
  return 1;
#endif
}

/// Whether a request that the process's limit refuses counts as rejected, and not as out of memory
/// (throw_on_cudamalloc_oom). Since 2.12.
inline bool limitRejects() {
#if CISTERN_TORCH >= 212
  return theirs::CUDAAllocatorConfig::throw_on_cudamalloc_oom();
#else
  return false;
#endif
}

}  // namespace cistern_torch
