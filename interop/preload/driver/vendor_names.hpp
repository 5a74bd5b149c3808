// How one source serves two vendors: the only file of this folder with a vendor `#if`.
//
// The code here, in served and in hooks is compiled twice, once with CISTERN_VENDOR_CUDA and once
// with CISTERN_VENDOR_HIP. The two SDKs' headers cannot stand in one translation unit. The code
// says Code, StreamHandle, kSuccess, driver.recordEvent(…), and GPU_NAME(cuX, hipX) where only the
// name differs. Its namespace is cistern::preload::cuda or cistern::preload::hip, which the build
// names GPU_NAMESPACE. Read next: driver.hpp.
#pragma once

#include <cstdint>

#include "cistern/types.hpp"

#if defined(CISTERN_VENDOR_CUDA)
#include "interop/preload/driver/cuda/functions.hpp"
#define GPU_NAME(cuda, hip) cuda
#elif defined(CISTERN_VENDOR_HIP)
#include "interop/preload/driver/hip/functions.hpp"
#define GPU_NAME(cuda, hip) hip
#else
#error "define CISTERN_VENDOR_CUDA or CISTERN_VENDOR_HIP"
#endif

namespace cistern::preload::GPU_NAMESPACE {

inline constexpr const char* kBackend = GPU_NAME("cuda", "hip");

using Code = GPU_NAME(CUresult, hipError_t);
using ContextHandle = GPU_NAME(CUcontext, int);
using StreamHandle = GPU_NAME(CUstream, hipStream_t);
using EventHandle = GPU_NAME(CUevent, hipEvent_t);
using PoolHandle = GPU_NAME(CUmemoryPool, hipMemPool_t);
using PoolAttribute = GPU_NAME(CUmemPool_attribute, hipMemPoolAttr);
using PoolAccess = GPU_NAME(CUmemAccessDesc, hipMemAccessDesc);
using DevicePointer = GPU_NAME(CUdeviceptr, void*);
using CaptureState = GPU_NAME(CUstreamCaptureStatus, hipStreamCaptureStatus);

inline constexpr Code kSuccess = GPU_NAME(CUDA_SUCCESS, hipSuccess);
inline constexpr Code kInvalidValue = GPU_NAME(CUDA_ERROR_INVALID_VALUE, hipErrorInvalidValue);
inline constexpr Code kOutOfMemory = GPU_NAME(CUDA_ERROR_OUT_OF_MEMORY, hipErrorOutOfMemory);
inline constexpr Code kNotInitialized =
    GPU_NAME(CUDA_ERROR_NOT_INITIALIZED, hipErrorNotInitialized);
inline constexpr Code kInvalidHandle = GPU_NAME(CUDA_ERROR_INVALID_HANDLE, hipErrorInvalidHandle);
inline constexpr Code kIllegalState = GPU_NAME(CUDA_ERROR_ILLEGAL_STATE, hipErrorIllegalState);
inline constexpr Code kNotReady = GPU_NAME(CUDA_ERROR_NOT_READY, hipErrorNotReady);
inline constexpr Code kNotSupported = GPU_NAME(CUDA_ERROR_NOT_SUPPORTED, hipErrorNotSupported);
inline constexpr Code kCaptureUnmatched =
    GPU_NAME(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, hipErrorStreamCaptureUnmatched);
inline constexpr Code kCaptureImplicit =
    GPU_NAME(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, hipErrorStreamCaptureImplicit);
inline constexpr Code kCaptureWrongThread =
    GPU_NAME(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, hipErrorStreamCaptureWrongThread);
inline constexpr Code kUnknownError = GPU_NAME(CUDA_ERROR_UNKNOWN, hipErrorUnknown);

/// Whether work may be submitted in a context that no hook has reported.
inline constexpr bool kContextsComeUnseen = GPU_NAME(false, true);
/// Whether a call that fails leaves its failure for the program to find (hipGetLastError).
inline constexpr bool kKeepsFailures = GPU_NAME(false, true);
inline constexpr ContextHandle kNoContext = GPU_NAME(nullptr, -1);
inline const StreamHandle kLegacyStream = reinterpret_cast<StreamHandle>(std::uintptr_t{1});
inline const StreamHandle kPerThreadStream = GPU_NAME(CU_STREAM_PER_THREAD, hipStreamPerThread);
inline constexpr CaptureState kNoCapture =
    GPU_NAME(CU_STREAM_CAPTURE_STATUS_NONE, hipStreamCaptureStatusNone);
inline constexpr CaptureState kActiveCapture =
    GPU_NAME(CU_STREAM_CAPTURE_STATUS_ACTIVE, hipStreamCaptureStatusActive);
inline constexpr PoolAttribute kPoolReserved =
    GPU_NAME(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, hipMemPoolAttrReservedMemCurrent);
inline constexpr PoolAttribute kPoolReservedHigh =
    GPU_NAME(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, hipMemPoolAttrReservedMemHigh);
inline constexpr PoolAttribute kPoolUsed =
    GPU_NAME(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, hipMemPoolAttrUsedMemCurrent);
inline constexpr PoolAttribute kPoolUsedHigh =
    GPU_NAME(CU_MEMPOOL_ATTR_USED_MEM_HIGH, hipMemPoolAttrUsedMemHigh);
inline constexpr auto kOfDevice = GPU_NAME(CU_MEM_LOCATION_TYPE_DEVICE, hipMemLocationTypeDevice);
inline constexpr auto kNoAccess =
    GPU_NAME(CU_MEM_ACCESS_FLAGS_PROT_NONE, hipMemAccessFlagsProtNone);

inline Address addressOf(DevicePointer pointer) noexcept {
  return GPU_NAME(pointer, toAddress(pointer));
}
inline DevicePointer devicePointer(Address address) noexcept {
  return GPU_NAME(address, toPointer(address));
}

/// The stream that a handle names: 0 is what the spelling of the function says it is.
inline StreamHandle streamMeant(StreamHandle stream, bool per_thread) noexcept {
  if (stream != nullptr) return stream;
  return per_thread ? kPerThreadStream : kLegacyStream;
}

}  // namespace cistern::preload::GPU_NAMESPACE
