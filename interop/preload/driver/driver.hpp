// The vendor's own functions, without hooks before them, as the code for both vendors calls them.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "allocator/device/page_trial.hpp"
#include "cistern/device.hpp"
#include "cistern/types.hpp"
#include "interop/preload/driver/vendor_names.hpp"

namespace cistern::preload::GPU_NAMESPACE {

// Apart from the table: a member hides the function whose name it has.
namespace detail {
#define CISTERN_TYPE(name, ...) using name##Type = decltype(&name);
CISTERN_HOOKED_FUNCTIONS(CISTERN_TYPE)
CISTERN_CALLED_FUNCTIONS(CISTERN_TYPE)
#undef CISTERN_TYPE
}  // namespace detail

/// Null where the driver has no such function.
struct FunctionTable {
#define CISTERN_MEMBER(name, ...) detail::name##Type name = nullptr;
  CISTERN_HOOKED_FUNCTIONS(CISTERN_MEMBER)
  CISTERN_CALLED_FUNCTIONS(CISTERN_MEMBER)
#undef CISTERN_MEMBER
};

struct Functions : FunctionTable {
  /// Whether every function that submits work is known. Unknown ones of CUDA are seen when they are
  /// looked up. HIP's are known up to version 7.2 (hooks/hip/submission_hooks.cpp).
  bool workIsKnown() const noexcept {
    [[maybe_unused]] int version = 0;
    return GPU_NAME(
        true, quietly(hipRuntimeGetVersion(&version)) == hipSuccess && version / 100'000 <= 702);
  }
  /// Hides a failure from the program. CUDA's driver keeps none.
  void forgetFailure() const noexcept { GPU_NAME(, (void)hipGetLastError()); }
  const char* errorName(Code code) const noexcept {
    [[maybe_unused]] const char* name = nullptr;
    return GPU_NAME(cuGetErrorName(code, &name) == CUDA_SUCCESS ? name : "an unknown error",
                    hipGetErrorName(code));
  }

  // ---- Contexts and devices

  Code currentContext(ContextHandle* context) const noexcept {
    return GPU_NAME(cuCtxGetCurrent, hipGetDevice)(context);
  }
  /// Calls with the context current.
  template <class Call>
  Code inContext(ContextHandle context, Call call) const {
    ContextHandle now{};
    if (const Code asked = quietly(currentContext(&now)); asked != kSuccess) return asked;
    if (now == context) return call();
    if (const Code set = quietly(GPU_NAME(cuCtxPushCurrent_v2, hipSetDevice)(context));
        set != kSuccess)
      return set;
    const Code result = call();
    const Code back = quietly(GPU_NAME(cuCtxPopCurrent_v2(&now), hipSetDevice(now)));
    return result != kSuccess ? result : back;
  }
  Code synchronizeContext() const noexcept {
    return quietly(GPU_NAME(cuCtxSynchronize, hipDeviceSynchronize)());
  }
  Code currentDevice(int* device) const noexcept {
    return quietly(GPU_NAME(cuCtxGetDevice, hipGetDevice)(device));
  }
  Code deviceName(char* name, int bytes, int device) const noexcept {
    return quietly(GPU_NAME(cuDeviceGetName, hipDeviceGetName)(name, bytes, device));
  }
  Code canAccessPeer(int* can, int device, int peer) const noexcept {
    return quietly(GPU_NAME(cuDeviceCanAccessPeer, hipDeviceCanAccessPeer)(can, device, peer));
  }
  bool hasPools() const noexcept {
    return GPU_NAME(cuDeviceGetDefaultMemPool, hipDeviceGetDefaultMemPool) != nullptr &&
           GPU_NAME(cuDeviceGetMemPool, hipDeviceGetMemPool) != nullptr;
  }
  Code defaultPool(PoolHandle* pool, int device) const noexcept {
    return quietly(GPU_NAME(cuDeviceGetDefaultMemPool, hipDeviceGetDefaultMemPool)(pool, device));
  }
  Code currentPool(PoolHandle* pool, int device) const noexcept {
    return quietly(GPU_NAME(cuDeviceGetMemPool, hipDeviceGetMemPool)(pool, device));
  }
  Code poolAttribute(PoolHandle pool, PoolAttribute attribute, void* out) const noexcept {
    return quietly(GPU_NAME(cuMemPoolGetAttribute, hipMemPoolGetAttribute)(pool, attribute, out));
  }

  // ---- Memory

  Code malloc(Address* out, std::size_t bytes) const noexcept {
    DevicePointer memory{};
    const Code result = quietly(GPU_NAME(cuMemAlloc_v2, hipMalloc)(&memory, bytes));
    *out = addressOf(memory);
    return result;
  }
  Code free(Address address) const noexcept {
    return quietly(GPU_NAME(cuMemFree_v2, hipFree)(devicePointer(address)));
  }
  Code memoryInfo(std::size_t* free_bytes, std::size_t* total_bytes) const noexcept {
    return quietly(GPU_NAME(cuMemGetInfo_v2, hipMemGetInfo)(free_bytes, total_bytes));
  }

  // ---- Pages: pages.cpp of the vendor

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
    return quietly(GPU_NAME(cuStreamCreate(stream, CU_STREAM_NON_BLOCKING),
                            hipStreamCreateWithFlags(stream, hipStreamNonBlocking)));
  }
  Code waitEvent(StreamHandle stream, EventHandle event) const noexcept {
    return quietly(GPU_NAME(cuStreamWaitEvent, hipStreamWaitEvent)(handed(stream), event, 0));
  }
  Code queryStream(StreamHandle stream) const noexcept {
    return quietly(GPU_NAME(cuStreamQuery, hipStreamQuery)(handed(stream)));
  }
  Code synchronizeStream(StreamHandle stream) const noexcept {
    return quietly(GPU_NAME(cuStreamSynchronize, hipStreamSynchronize)(handed(stream)));
  }
  Code isCapturing(StreamHandle stream, CaptureState* state) const noexcept {
    return quietly(GPU_NAME(cuStreamIsCapturing, hipStreamIsCapturing)(handed(stream), state));
  }
  /// The modes are numbered as the engine's are.
  Code exchangeCaptureMode(int* mode) const noexcept {
    auto exchanged = GPU_NAME(CUstreamCaptureMode, hipStreamCaptureMode)(*mode);
    const Code result = quietly(GPU_NAME(cuThreadExchangeStreamCaptureMode,
                                         hipThreadExchangeStreamCaptureMode)(&exchanged));
    *mode = int(exchanged);
    return result;
  }
  /// The result of a free while a graph is captured. It is an error, which breaks the capture, or
  /// none, depending on modes that the driver knows.
  Code whatCaptureSays() const noexcept;

  // ---- Events

  Code createEvent(EventHandle* event) const noexcept {
    return quietly(GPU_NAME(cuEventCreate(event, CU_EVENT_DISABLE_TIMING),
                            hipEventCreateWithFlags(event, hipEventDisableTiming)));
  }
  Code destroyEvent(EventHandle event) const noexcept {
    return quietly(GPU_NAME(cuEventDestroy_v2, hipEventDestroy)(event));
  }
  Code recordEvent(EventHandle event, StreamHandle stream) const noexcept {
    return quietly(GPU_NAME(cuEventRecord, hipEventRecord)(event, handed(stream)));
  }
  Code queryEvent(EventHandle event) const noexcept {
    return quietly(GPU_NAME(cuEventQuery, hipEventQuery)(event));
  }
  Code synchronizeEvent(EventHandle event) const noexcept {
    return quietly(GPU_NAME(cuEventSynchronize, hipEventSynchronize)(event));
  }

 private:
  /// HIP's calls take 0 for the legacy stream.
  static StreamHandle handed(StreamHandle stream) noexcept {
    return GPU_NAME(stream, stream == kLegacyStream ? nullptr : stream);
  }
  Code quietly(Code code) const noexcept {
    if (kKeepsFailures && code != kSuccess) [[unlikely]]
      forgetFailure();
    return code;
  }
};

namespace detail {
inline constinit std::atomic<const Functions*> loaded_functions{nullptr};
[[gnu::cold]] const Functions* loadFunctions() noexcept;
}  // namespace detail

/// The driver (HIP: its runtime) that the program has loaded; null as long as it has none.
/// Thread-safe, and the same for good once it is there.
inline const Functions* driver() noexcept {
  const Functions* const there = detail::loaded_functions.load(std::memory_order_acquire);
  if (there != nullptr) [[likely]]
    return there;
  return detail::loadFunctions();
}
/// Its handle; null as long as it has none.
void* driverLibrary() noexcept;

}  // namespace cistern::preload::GPU_NAMESPACE
