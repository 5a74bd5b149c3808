// The release of PyTorch that this is built against. No code outside this folder asks which one it
// is. The rest of the folder gives each of PyTorch's types and interfaces the shape that the newest
// release has.
#pragma once

#include <type_traits>

#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/version.h>

#include "interop/torch/torch_pools.hpp"

/// 211 for 2.11.
#define CISTERN_TORCH (100 * TORCH_VERSION_MAJOR + TORCH_VERSION_MINOR)
#if CISTERN_TORCH < 209
#error "cistern.torch is built against PyTorch 2.9 and later"
#endif

namespace cistern_torch {

static_assert(std::is_same_v<TorchPoolId, c10::MempoolId_t>);

namespace theirs = c10::cuda::CUDACachingAllocator;
using c10::DeviceIndex;

}  // namespace cistern_torch
