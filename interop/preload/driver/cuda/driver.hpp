// CUDA's driver as the code for both vendors calls it. hip/driver.hpp defines the same names in the
// same order.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/device/page_trial.hpp"
#include "cistern/device.hpp"
#include "cistern/types.hpp"
#include "interop/preload/driver/cuda/functions.hpp"

namespace cistern::preload::cuda {

inline constexpr const char* kBackend = "cuda";

// ---- Names --------------------------------------------------------------------------------------

using Code = CUresult;
using ContextHandle = CUcontext;
using StreamHandle = CUstream;
using EventHandle = CUevent;
using PoolHandle = CUmemoryPool;
using PoolAttribute = CUmemPool_attribute;
using PoolAccess = CUmemAccessDesc;
using DevicePointer = CUdeviceptr;
using CaptureState = CUstreamCaptureStatus;

inline constexpr Code kSuccess = CUDA_SUCCESS;
inline constexpr Code kInvalidValue = CUDA_ERROR_INVALID_VALUE;
inline constexpr Code kOutOfMemory = CUDA_ERROR_OUT_OF_MEMORY;
inline constexpr Code kNotInitialized = CUDA_ERROR_NOT_INITIALIZED;
inline constexpr Code kInvalidHandle = CUDA_ERROR_INVALID_HANDLE;
inline constexpr Code kIllegalState = CUDA_ERROR_ILLEGAL_STATE;
inline constexpr Code kNotReady = CUDA_ERROR_NOT_READY;
inline constexpr Code kNotSupported = CUDA_ERROR_NOT_SUPPORTED;
inline constexpr Code kCaptureUnmatched = CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
inline constexpr Code kCaptureImplicit = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
inline constexpr Code kCaptureWrongThread = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
inline constexpr Code kUnknownError = CUDA_ERROR_UNKNOWN;

/// Whether work may be submitted in a context that no hook has reported.
inline constexpr bool kContextsComeUnseen = false;
inline constexpr ContextHandle kNoContext = nullptr;
inline const StreamHandle kLegacyStream = CU_STREAM_LEGACY;
inline const StreamHandle kPerThreadStream = CU_STREAM_PER_THREAD;
inline constexpr CaptureState kNoCapture = CU_STREAM_CAPTURE_STATUS_NONE;
inline constexpr CaptureState kActiveCapture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
inline constexpr PoolAttribute kPoolReserved = CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT;
inline constexpr PoolAttribute kPoolReservedHigh = CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
inline constexpr PoolAttribute kPoolUsed = CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
inline constexpr PoolAttribute kPoolUsedHigh = CU_MEMPOOL_ATTR_USED_MEM_HIGH;
inline constexpr auto kOfDevice = CU_MEM_LOCATION_TYPE_DEVICE;
inline constexpr auto kNoAccess = CU_MEM_ACCESS_FLAGS_PROT_NONE;

inline Address addressOf(DevicePointer pointer) noexcept { return pointer; }
inline DevicePointer devicePointer(Address address) noexcept { return address; }

// ---- Verbs --------------------------------------------------------------------------------------

struct Functions : FunctionTable {
  /// Whether every function that submits work is known, in every version that may be loaded. Here
  /// unknown functions are seen when they are looked up.
  bool workIsKnown() const noexcept { return true; }
  /// Hides a failure from the program. The driver keeps none, so this does nothing.
  void forgetFailure() const noexcept {}
  const char* errorName(Code code) const noexcept {
    const char* name = nullptr;
    return cuGetErrorName(code, &name) == CUDA_SUCCESS ? name : "an unknown error";
  }

  // ---- Contexts and devices

  Code currentContext(ContextHandle* context) const noexcept { return cuCtxGetCurrent(context); }
  /// Calls with the context current.
  template <class Call>
  Code inContext(ContextHandle context, Call call) const {
    CUcontext now = nullptr;
    if (const Code asked = cuCtxGetCurrent(&now); asked != CUDA_SUCCESS) return asked;
    if (now == context) return call();
    if (const Code pushed = cuCtxPushCurrent_v2(context); pushed != CUDA_SUCCESS) return pushed;
    const Code result = call();
    const Code back = cuCtxPopCurrent_v2(&now);
    return result != CUDA_SUCCESS ? result : back;
  }
  Code synchronizeContext() const noexcept { return cuCtxSynchronize(); }
  Code currentDevice(int* device) const noexcept { return cuCtxGetDevice(device); }
  Code deviceName(char* name, int bytes, int device) const noexcept {
    return cuDeviceGetName(name, bytes, device);
  }
  Code canAccessPeer(int* can, int device, int peer) const noexcept {
    return cuDeviceCanAccessPeer(can, device, peer);
  }
  bool hasPools() const noexcept {
    return cuDeviceGetDefaultMemPool != nullptr && cuDeviceGetMemPool != nullptr;
  }
  Code defaultPool(PoolHandle* pool, int device) const noexcept {
    return cuDeviceGetDefaultMemPool(pool, device);
  }
  Code currentPool(PoolHandle* pool, int device) const noexcept {
    return cuDeviceGetMemPool(pool, device);
  }
  Code poolAttribute(PoolHandle pool, PoolAttribute attribute, void* out) const noexcept {
    return cuMemPoolGetAttribute(pool, attribute, out);
  }

  // ---- Memory

  Code malloc(Address* out, std::size_t bytes) const noexcept {
    CUdeviceptr address = 0;
    const Code result = cuMemAlloc_v2(&address, bytes);
    *out = address;
    return result;
  }
  Code free(Address address) const noexcept { return cuMemFree_v2(address); }
  Code memoryInfo(std::size_t* free_bytes, std::size_t* total_bytes) const noexcept {
    return cuMemGetInfo_v2(free_bytes, total_bytes);
  }

  // ---- Pages: driver/cuda/pages.cpp

  /// The driver's claims about pages; the granularity is not set.
  VirtualMemoryCapability claimedPages(int device) const noexcept;
  Code granularity(std::size_t* bytes, int device,
                   const VirtualMemoryCapability& kind) const noexcept;
  Code reserve(Address* out, std::size_t bytes) const noexcept;
  Code freeReservation(Address address, std::size_t bytes) const noexcept;
  Code createPage(std::uint64_t* page, std::size_t bytes, int device,
                  const VirtualMemoryCapability& kind) const noexcept;
  /// A page of the host's memory.
  Code createHostPage(std::uint64_t* page, std::size_t bytes, int device,
                      HostPages kind) const noexcept;
  Code releasePage(std::uint64_t page) const noexcept;
  Code exportPage(std::uint64_t page, int* descriptor) const noexcept;
  Code importPage(int descriptor, std::uint64_t* page) const noexcept;
  Code map(Address address, std::size_t bytes, std::uint64_t page) const noexcept;
  Code setAccess(Address address, std::size_t bytes, const std::vector<int>& devices) const;
  Code unmap(Address address, std::size_t bytes) const noexcept;

  // ---- Streams and captures

  /// One that does not synchronise with the legacy default stream.
  Code createStream(StreamHandle* stream) const noexcept {
    return cuStreamCreate(stream, CU_STREAM_NON_BLOCKING);
  }
  Code waitEvent(StreamHandle stream, EventHandle event) const noexcept {
    return cuStreamWaitEvent(stream, event, 0);
  }
  Code queryStream(StreamHandle stream) const noexcept { return cuStreamQuery(stream); }
  Code synchronizeStream(StreamHandle stream) const noexcept { return cuStreamSynchronize(stream); }
  Code isCapturing(StreamHandle stream, CaptureState* state) const noexcept {
    return cuStreamIsCapturing(stream, state);
  }
  /// The modes are numbered as the engine's are.
  Code exchangeCaptureMode(int* mode) const noexcept {
    auto exchanged = CUstreamCaptureMode(*mode);
    const Code result = cuThreadExchangeStreamCaptureMode(&exchanged);
    *mode = int(exchanged);
    return result;
  }
  /// The result of a free while a graph is captured. It is an error, which breaks the capture, or
  /// none, depending on modes that the driver knows.
  Code whatCaptureSays() const noexcept {
    CUevent event = nullptr;
    if (cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return CUDA_SUCCESS;
    const Code result = cuEventQuery(event);
    (void)cuEventDestroy_v2(event);
    return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
  }

  // ---- Events

  Code createEvent(EventHandle* event) const noexcept {
    return cuEventCreate(event, CU_EVENT_DISABLE_TIMING);
  }
  Code destroyEvent(EventHandle event) const noexcept { return cuEventDestroy_v2(event); }
  Code recordEvent(EventHandle event, StreamHandle stream) const noexcept {
    return cuEventRecord(event, stream);
  }
  Code queryEvent(EventHandle event) const noexcept { return cuEventQuery(event); }
  Code synchronizeEvent(EventHandle event) const noexcept { return cuEventSynchronize(event); }
};

}  // namespace cistern::preload::cuda
