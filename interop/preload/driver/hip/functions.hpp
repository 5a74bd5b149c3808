// HIP's own functions, without our hooks.
//
// They are looked up in libamdhip64 itself, with the dlsym of the C library: what calls them by
// this table never comes into a hook. The runtime is not loaded for it: until the program loads it,
// there is no table.
#pragma once

#include <cstddef>
#include <cstdint>

#include <hip/hip_runtime_api.h>  // types and declarations only

namespace cistern::preload::hip {

// Types that cannot be taken from the header. Either it overloads the name with templates, or the
// HIP that this is built with is older than the function. These declarations hide the header's
// names in this namespace; there are no such functions.
hipError_t hipMalloc(void**, std::size_t);
hipError_t hipMallocManaged(void**, std::size_t, unsigned);
hipError_t hipMallocPitch(void**, std::size_t*, std::size_t, std::size_t);
hipError_t hipMallocAsync(void**, std::size_t, hipStream_t);
hipError_t hipMallocFromPoolAsync(void**, std::size_t, hipMemPool_t, hipStream_t);
hipError_t hipMemSetMemPool(hipMemLocation*, hipMemAllocationType, hipMemPool_t);
hipError_t hipStreamSynchronize_spt(hipStream_t);
hipError_t hipStreamBeginCapture_spt(hipStream_t, hipStreamCaptureMode);
hipError_t hipStreamBeginCaptureToGraph(hipStream_t, hipGraph_t, const hipGraphNode_t*, const void*,
                                        std::size_t, hipStreamCaptureMode);
hipError_t hipStreamEndCapture_spt(hipStream_t, hipGraph_t*);
hipError_t hipExtGetLastError();
hipError_t hipGetProcAddress(const char*, void**, int, std::uint64_t, void*);
hipError_t hipGetProcAddress_spt(const char*, void**, int, std::uint64_t, void*);
hipError_t hipGetDriverEntryPoint(const char*, void**, unsigned long long, void*);
hipError_t hipGetDriverEntryPoint_spt(const char*, void**, unsigned long long, void*);

// Those that have a hook.
#define CISTERN_HOOKED_FUNCTIONS(X) \
  X(hipMalloc)                      \
  X(hipFree)                        \
  X(hipExtMallocWithFlags)          \
  X(hipMemGetInfo)                  \
  X(hipMemGetAddressRange)          \
  X(hipMemPtrGetInfo)               \
  X(hipMallocAsync)                 \
  X(hipFreeAsync)                   \
  X(hipMallocFromPoolAsync)         \
  X(hipDeviceSetMemPool)            \
  X(hipMemSetMemPool)               \
  X(hipMemPoolSetAccess)            \
  X(hipMemPoolGetAttribute)         \
  X(hipMemPoolSetAttribute)         \
  X(hipMemPoolTrimTo)               \
  X(hipMallocManaged)               \
  X(hipMallocPitch)                 \
  X(hipMemAllocPitch)               \
  X(hipMalloc3D)                    \
  X(hipMallocArray)                 \
  X(hipMalloc3DArray)               \
  X(hipArrayCreate)                 \
  X(hipArray3DCreate)               \
  X(hipMallocMipmappedArray)        \
  X(hipMipmappedArrayCreate)        \
  X(hipMemCreate)                   \
  X(hipIpcGetMemHandle)             \
  X(hipMemRetainAllocationHandle)   \
  X(hipPointerGetAttribute)         \
  X(hipDrvPointerGetAttributes)     \
  X(hipStreamCreate)                \
  X(hipStreamCreateWithFlags)       \
  X(hipStreamCreateWithPriority)    \
  X(hipExtStreamCreateWithCUMask)   \
  X(hipStreamDestroy)               \
  X(hipStreamSynchronize)           \
  X(hipStreamSynchronize_spt)       \
  X(hipDeviceSynchronize)           \
  X(hipCtxSynchronize)              \
  X(hipStreamBeginCapture)          \
  X(hipStreamBeginCapture_spt)      \
  X(hipStreamBeginCaptureToGraph)   \
  X(hipStreamEndCapture)            \
  X(hipStreamEndCapture_spt)        \
  X(hipDeviceReset)                 \
  X(hipDevicePrimaryCtxReset)       \
  X(hipDeviceEnablePeerAccess)      \
  X(hipGetLastError)                \
  X(hipPeekAtLastError)             \
  X(hipExtGetLastError)             \
  X(hipGetProcAddress)              \
  X(hipGetProcAddress_spt)          \
  X(hipGetDriverEntryPoint)         \
  X(hipGetDriverEntryPoint_spt)

// Those that we only call.
#define CISTERN_CALLED_FUNCTIONS(X)     \
  X(hipGetErrorName)                    \
  X(hipRuntimeGetVersion)               \
  X(hipGetDevice)                       \
  X(hipSetDevice)                       \
  X(hipDeviceGetName)                   \
  X(hipDeviceCanAccessPeer)             \
  X(hipDeviceGetDefaultMemPool)         \
  X(hipDeviceGetMemPool)                \
  X(hipStreamQuery)                     \
  X(hipStreamWaitEvent)                 \
  X(hipStreamIsCapturing)               \
  X(hipThreadExchangeStreamCaptureMode) \
  X(hipEventCreateWithFlags)            \
  X(hipEventDestroy)                    \
  X(hipEventRecord)                     \
  X(hipEventQuery)                      \
  X(hipEventSynchronize)

}  // namespace cistern::preload::hip
