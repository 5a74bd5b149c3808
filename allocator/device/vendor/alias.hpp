// How one source serves two vendors: this file and runtime_functions.hpp alone have a vendor `#if`.
//
// The sources of this folder that include vendor_device.hpp are compiled twice: once with
// CISTERN_VENDOR_CUDA and once with CISTERN_VENDOR_HIP. The two SDKs' headers cannot stand in one
// translation unit. The sources write GPU(Malloc) for cudaMalloc or hipMalloc, and live in the
// namespace GPU_NAMESPACE (cistern::cuda or cistern::hip). For differences beyond the prefix,
// cuda_alias.hpp and hip_alias.hpp each define the same name for their vendor: read them side by
// side.
#pragma once

#if defined(CISTERN_VENDOR_CUDA)
#include "allocator/device/vendor/cuda_alias.hpp"
#elif defined(CISTERN_VENDOR_HIP)
#include "allocator/device/vendor/hip_alias.hpp"
#else
#error "define CISTERN_VENDOR_CUDA or CISTERN_VENDOR_HIP"
#endif

namespace cistern::GPU_NAMESPACE {

using Error = GPU(Error_t);
using StreamHandle = GPU(Stream_t);
using EventHandle = GPU(Event_t);
using GraphHandle = GPU(Graph_t);
using GraphExecHandle = GPU(GraphExec_t);
using GraphNodeHandle = GPU(GraphNode_t);
using PoolHandle = GPU(MemPool_t);
using PoolProperties = GPU(MemPoolProps);
using PoolAttribute = GPU(MemPoolAttr);
using StreamCaptureMode = GPU(StreamCaptureMode);
using StreamCaptureStatus = GPU(StreamCaptureStatus);

inline constexpr Error kSuccess = GPU(Success);

// error_kind.cpp reads codes as numbers, the same for both vendors.
static_assert(GPU(ErrorInvalidValue) == 1 && GPU(ErrorMemoryAllocation) == 2);
static_assert(GPU(ErrorInsufficientDriver) == 35 && GPU(ErrorNoDevice) == 100);
static_assert(GPU(ErrorInvalidDevice) == 101 && GPU(ErrorInvalidResourceHandle) == 400);
static_assert(GPU(ErrorPeerAccessUnsupported) == 217);
static_assert(GPU(ErrorNotReady) == 600 && GPU(ErrorContextIsDestroyed) == 709);
static_assert(GPU(ErrorNotSupported) == 801 && GPU(ErrorStreamCaptureUnsupported) == 900);
static_assert(GPU(ErrorStreamCaptureInvalidated) == 901 && GPU(ErrorCapturedEvent) == 907);

}  // namespace cistern::GPU_NAMESPACE
