// HIP's runtime as the code for both vendors calls it. cuda/driver.hpp defines the same names in
// the same order.
//
// A device is its context, named by its number. The legacy default stream, which HIP calls 0, has a
// handle here. The handle is HIP 6's own name for it.
//
// The program must not find the failures of our calls. It asks hipGetLastError after calls of its
// own.
#pragma once

#include <cstdint>
#include <vector>

#include "allocator/device/page_trial.hpp"
#include "cistern/device.hpp"
#include "cistern/types.hpp"
#include "interop/preload/driver/hip/functions.hpp"

namespace cistern::preload::hip {

inline constexpr const char* kBackend = "hip";

// ---- Names --------------------------------------------------------------------------------------

using Code = hipError_t;
using ContextHandle = int;
using StreamHandle = hipStream_t;
using EventHandle = hipEvent_t;
using PoolHandle = hipMemPool_t;
using PoolAttribute = hipMemPoolAttr;
using PoolAccess = hipMemAccessDesc;
using DevicePointer = void*;
using CaptureState = hipStreamCaptureStatus;

inline constexpr Code kSuccess = hipSuccess;
inline constexpr Code kInvalidValue = hipErrorInvalidValue;
inline constexpr Code kOutOfMemory = hipErrorOutOfMemory;
inline constexpr Code kNotInitialized = hipErrorNotInitialized;
inline constexpr Code kInvalidHandle = hipErrorInvalidHandle;
inline constexpr Code kIllegalState = hipErrorIllegalState;
inline constexpr Code kNotReady = hipErrorNotReady;
inline constexpr Code kNotSupported = hipErrorNotSupported;
inline constexpr Code kCaptureUnmatched = hipErrorStreamCaptureUnmatched;
inline constexpr Code kCaptureImplicit = hipErrorStreamCaptureImplicit;
inline constexpr Code kCaptureWrongThread = hipErrorStreamCaptureWrongThread;
inline constexpr Code kUnknownError = hipErrorUnknown;

/// Whether work may be submitted in a context that no hook has reported.
inline constexpr bool kContextsComeUnseen = true;
inline constexpr ContextHandle kNoContext = -1;
inline const StreamHandle kLegacyStream = reinterpret_cast<StreamHandle>(std::uintptr_t{1});
inline const StreamHandle kPerThreadStream = hipStreamPerThread;
inline constexpr CaptureState kNoCapture = hipStreamCaptureStatusNone;
inline constexpr CaptureState kActiveCapture = hipStreamCaptureStatusActive;
inline constexpr PoolAttribute kPoolReserved = hipMemPoolAttrReservedMemCurrent;
inline constexpr PoolAttribute kPoolReservedHigh = hipMemPoolAttrReservedMemHigh;
inline constexpr PoolAttribute kPoolUsed = hipMemPoolAttrUsedMemCurrent;
inline constexpr PoolAttribute kPoolUsedHigh = hipMemPoolAttrUsedMemHigh;
inline constexpr auto kOfDevice = hipMemLocationTypeDevice;
inline constexpr auto kNoAccess = hipMemAccessFlagsProtNone;

inline Address addressOf(DevicePointer pointer) noexcept { return toAddress(pointer); }
inline DevicePointer devicePointer(Address address) noexcept { return toPointer(address); }

// ---- Verbs --------------------------------------------------------------------------------------

struct Functions : FunctionTable {
  /// Whether every function that submits work is known in the version that is loaded. That holds
  /// for versions up to HIP 7.2 (hooks/hip/submitting.hpp).
  bool workIsKnown() const noexcept {
    int version = 0;
    return quietly(hipRuntimeGetVersion(&version)) == hipSuccess && version / 100'000 <= 702;
  }
  /// A failure is not to be found by the program any more.
  void forgetFailure() const noexcept { (void)hipGetLastError(); }
  const char* errorName(Code code) const noexcept { return hipGetErrorName(code); }

  // ---- Contexts and devices

  Code currentContext(ContextHandle* context) const noexcept { return hipGetDevice(context); }
  /// Calls with the context current.
  template <class Call>
  Code inContext(ContextHandle context, Call call) const {
    int now = 0;
    if (const Code asked = quietly(hipGetDevice(&now)); asked != hipSuccess) return asked;
    if (now == context) return call();
    if (const Code set = quietly(hipSetDevice(context)); set != hipSuccess) return set;
    const Code result = call();
    const Code back = quietly(hipSetDevice(now));
    return result != hipSuccess ? result : back;
  }
  Code synchronizeContext() const noexcept { return quietly(hipDeviceSynchronize()); }
  Code currentDevice(int* device) const noexcept { return quietly(hipGetDevice(device)); }
  Code deviceName(char* name, int bytes, int device) const noexcept {
    return quietly(hipDeviceGetName(name, bytes, device));
  }
  Code canAccessPeer(int* can, int device, int peer) const noexcept {
    return quietly(hipDeviceCanAccessPeer(can, device, peer));
  }
  bool hasPools() const noexcept {
    return hipDeviceGetDefaultMemPool != nullptr && hipDeviceGetMemPool != nullptr;
  }
  Code defaultPool(PoolHandle* pool, int device) const noexcept {
    return quietly(hipDeviceGetDefaultMemPool(pool, device));
  }
  Code currentPool(PoolHandle* pool, int device) const noexcept {
    return quietly(hipDeviceGetMemPool(pool, device));
  }
  Code poolAttribute(PoolHandle pool, PoolAttribute attribute, void* out) const noexcept {
    return quietly(hipMemPoolGetAttribute(pool, attribute, out));
  }

  // ---- Memory

  Code malloc(Address* out, std::size_t bytes) const noexcept {
    void* memory = nullptr;
    const Code result = quietly(hipMalloc(&memory, bytes));
    *out = toAddress(memory);
    return result;
  }
  Code free(Address address) const noexcept { return quietly(hipFree(toPointer(address))); }
  Code memoryInfo(std::size_t* free_bytes, std::size_t* total_bytes) const noexcept {
    return quietly(hipMemGetInfo(free_bytes, total_bytes));
  }

  // ---- Pages: none. HIP has them, but some versions refuse a copy or a set that crosses from one
  // page to the next. Programs do that with any memory.

  VirtualMemoryCapability claimedPages(int) const noexcept { return {}; }
  Code granularity(std::size_t*, int, const VirtualMemoryCapability&) const noexcept {
    return kNotSupported;
  }
  Code reserve(Address*, std::size_t) const noexcept { return kNotSupported; }
  Code freeReservation(Address, std::size_t) const noexcept { return kNotSupported; }
  Code createPage(std::uint64_t*, std::size_t, int, const VirtualMemoryCapability&) const noexcept {
    return kNotSupported;
  }
  Code createHostPage(std::uint64_t*, std::size_t, int, HostPages) const noexcept {
    return kNotSupported;
  }
  Code releasePage(std::uint64_t) const noexcept { return kNotSupported; }
  Code exportPage(std::uint64_t, int*) const noexcept { return kNotSupported; }
  Code importPage(int, std::uint64_t*) const noexcept { return kNotSupported; }
  Code map(Address, std::size_t, std::uint64_t) const noexcept { return kNotSupported; }
  Code setAccess(Address, std::size_t, const std::vector<int>&) const { return kNotSupported; }
  Code unmap(Address, std::size_t) const noexcept { return kNotSupported; }

  // ---- Streams and captures

  /// One that does not synchronise with the legacy default stream.
  Code createStream(StreamHandle* stream) const noexcept {
    return quietly(hipStreamCreateWithFlags(stream, hipStreamNonBlocking));
  }
  Code waitEvent(StreamHandle stream, EventHandle event) const noexcept {
    return quietly(hipStreamWaitEvent(handed(stream), event, 0));
  }
  Code queryStream(StreamHandle stream) const noexcept {
    return quietly(hipStreamQuery(handed(stream)));
  }
  Code synchronizeStream(StreamHandle stream) const noexcept {
    return quietly(hipStreamSynchronize(handed(stream)));
  }
  Code isCapturing(StreamHandle stream, CaptureState* state) const noexcept {
    return quietly(hipStreamIsCapturing(handed(stream), state));
  }
  /// The modes are numbered as the engine's are.
  Code exchangeCaptureMode(int* mode) const noexcept {
    auto exchanged = hipStreamCaptureMode(*mode);
    const Code result = quietly(hipThreadExchangeStreamCaptureMode(&exchanged));
    *mode = int(exchanged);
    return result;
  }
  /// The result of a free while a graph is captured. It is an error, which breaks the capture, or
  /// none, depending on modes that the runtime knows.
  Code whatCaptureSays() const noexcept { return hipFree(nullptr); }

  // ---- Events

  Code createEvent(EventHandle* event) const noexcept {
    return quietly(hipEventCreateWithFlags(event, hipEventDisableTiming));
  }
  Code destroyEvent(EventHandle event) const noexcept { return quietly(hipEventDestroy(event)); }
  Code recordEvent(EventHandle event, StreamHandle stream) const noexcept {
    return quietly(hipEventRecord(event, handed(stream)));
  }
  Code queryEvent(EventHandle event) const noexcept { return quietly(hipEventQuery(event)); }
  Code synchronizeEvent(EventHandle event) const noexcept {
    return quietly(hipEventSynchronize(event));
  }

 private:
  static StreamHandle handed(StreamHandle stream) noexcept {
    return stream == kLegacyStream ? nullptr : stream;
  }
  Code quietly(Code code) const noexcept {
    if (code != hipSuccess) [[unlikely]]
      forgetFailure();
    return code;
  }
};

}  // namespace cistern::preload::hip
