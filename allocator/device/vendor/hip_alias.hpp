// HIP's differences from CUDA. cuda_alias.hpp defines the same names in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <set>
#include <span>
#include <string>

#include "allocator/device/page_trial.hpp"
#include "allocator/device/vendor/loaded_runtime.hpp"
#include "cistern/device.hpp"

namespace cistern::hip {

inline constexpr const char* kBackend = "hip";

// ---- What failures say -------------------------------------------------------------------------
// noDeviceText, errorCode, errorName, errorText and runtimeText are in loaded_runtime.hpp.

// ---- Which device is current -------------------------------------------------------------------
// A number that belongs to the thread; setting it makes nothing on the device.

using Current = int;

inline hipError_t currentFor(int ordinal, Current* current) {
  *current = ordinal;
  return hipSuccess;
}
inline hipError_t getCurrent(Current* current) { return hipGetDevice(current); }
inline bool standsForADevice(Current) { return true; }
inline hipError_t setCurrent(Current current) { return hipSetDevice(current); }

inline hipError_t setBack(Current before) { return setCurrent(before); }

/// The detail to add to a failure of currentFor.
inline std::string openDetail() { return ""; }

// ---- What the device can do --------------------------------------------------------------------

/// Not hipGetDeviceProperties: its structure has another size in each version. A runtime of another
/// version than our headers would write past the end of ours.
inline hipError_t deviceName(int ordinal, std::string* name) {
  char text[256] = "";
  const hipError_t error = hipDeviceGetName(text, int(sizeof(text)), ordinal);
  *name = text;
  return error;
}
inline hipError_t memoryPoolsSupported(int ordinal, int* supported) {
  return hipDeviceGetAttribute(supported, hipDeviceAttributeMemoryPoolsSupported, ordinal);
}
/// The first number of the compute capability.
inline hipError_t computeMajor(int ordinal, int* major) {
  return hipDeviceGetAttribute(major, hipDeviceAttributeComputeCapabilityMajor, ordinal);
}
/// HIP has no attribute for it, so a small allocation is named once. That takes a call of AMD's own
/// driver, which the kernel's does not have. A device without room shows nothing.
inline hipError_t interprocessSupported(int, int* supported) {
  *supported = 1;
  hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;  // this thread may be capturing
  const bool relaxed = hipThreadExchangeStreamCaptureMode(&mode) == hipSuccess;
  void* memory = nullptr;
  hipIpcMemHandle_t name{};
  const bool has_room = hipMalloc(&memory, 4096) == hipSuccess;
  if (has_room) *supported = hipIpcGetMemHandle(&name, memory) == hipSuccess ? 1 : 0;
  if (!has_room || *supported == 0) (void)hipGetLastError();
  if (has_room) (void)hipFree(memory);
  if (relaxed) (void)hipThreadExchangeStreamCaptureMode(&mode);
  return hipSuccess;
}

/// Lets the current device use all memory of malloc on device `of`, past and future.
inline hipError_t openToCurrent(int of) { return hipDeviceEnablePeerAccess(of, 0); }

// ---- Pinned host memory ------------------------------------------------------------------------

inline hipError_t pinnedMalloc(void** memory, std::size_t bytes) {
  return hipHostMalloc(memory, bytes, hipHostMallocPortable);
}
inline hipError_t pinnedFree(void* memory) { return hipHostFree(memory); }

/// All in one call: there is none.
inline hipError_t copyTogether(std::span<const BusCopy>, bool /*out*/, hipStream_t) {
  return hipErrorNotSupported;
}

// ---- Capture -----------------------------------------------------------------------------------

/// Before HIP 5.6 a stream that joins a capture has an id of its own, and another one each time
/// that it waits. The graph is the same on all of them; its address may come again when it is
/// destroyed.
inline bool capturesHaveSeveralIds() {
  static const bool they_have = [] {
    int version = 0;
    return hipRuntimeGetVersion(&version) == hipSuccess && version < 50'600'000;
  }();
  return they_have;
}

/// What is meant by an answer about a stream's capture. HIP 5.2 says "unknown" of the default
/// stream, which no capture records, and "invalid value" of a stream that is not there.
inline hipError_t captureAnswer(hipError_t error, hipStream_t stream) {
  if (error == hipErrorUnknown && stream == nullptr) {
    (void)hipGetLastError();
    return hipSuccess;
  }
  return error == hipErrorInvalidValue ? hipErrorInvalidHandle : error;
}

/// Also the nodes of the frontier, in the runtime's memory: read them before the stream's next
/// call. Valid while the capture is active. Pre: *status is none.
inline hipError_t streamCaptureFrontier(hipStream_t stream, hipStreamCaptureStatus* status,
                                        unsigned long long* id, const hipGraphNode_t** nodes,
                                        std::size_t* count) {
  hipGraph_t graph = nullptr;
  const hipError_t error =
      captureAnswer(hipStreamGetCaptureInfo_v2(stream, status, id, &graph, nodes, count), stream);
  if (error == hipSuccess && *status == hipStreamCaptureStatusActive && capturesHaveSeveralIds())
    *id = reinterpret_cast<std::uintptr_t>(graph);
  return error;
}

inline hipError_t streamCaptureInfo(hipStream_t stream, hipStreamCaptureStatus* status,
                                    unsigned long long* id) {
  if (!capturesHaveSeveralIds())
    return captureAnswer(hipStreamGetCaptureInfo(stream, status, id), stream);
  const hipGraphNode_t* nodes = nullptr;
  std::size_t count = 0;
  return streamCaptureFrontier(stream, status, id, &nodes, &count);
}

/// The first *count nodes that `node` follows. Post: *count is their number, if that is less than
/// before. A runtime may also refuse an array that is too small. Then it gives no node, and *count,
/// no less than before, is their number.
inline hipError_t graphDependencies(hipGraphNode_t node, hipGraphNode_t* nodes,
                                    std::size_t* count) {
  const std::size_t room = *count;
  const hipError_t error = hipGraphNodeGetDependencies(node, nodes, count);
  if (error != hipErrorInvalidValue) return error;
  if (hipGraphNodeGetDependencies(node, nullptr, count) != hipSuccess || *count < room)
    return error;
  (void)hipGetLastError();
  return hipSuccess;
}

/// Verbosely: 1 is hipGraphDebugDotFlagsVerbose, which the headers of HIP 5.2 do not have.
inline hipError_t graphDot(hipGraph_t graph, const char* path) {
  return hipGraphDebugDotPrint(graph, path, 1U);
}

// ---- Virtual memory: the runtime's own, with pointers for addresses and handles ----------------

struct VirtualMemory {
  /// Zeroed and set by name, because the order of the fields changed between versions.
  static hipMemAllocationProp properties(int ordinal) {
    hipMemAllocationProp properties{};
    properties.type = hipMemAllocationTypePinned;
    properties.location.type = hipMemLocationTypeDevice;
    properties.location.id = ordinal;
    return properties;
  }
  /// HIP 5.2 has no attribute for it. A device that reports its granularity claims pages, and is
  /// tried. The field that would make them exportable has another name in each version. The flag
  /// for network cards is not in these headers.
  static VirtualMemoryCapability claimed(int ordinal) {
    std::size_t granule = 0;
    VirtualMemoryCapability pages;
    pages.supported = granularity(ordinal, {}, &granule) == hipSuccess && granule > 0;
    if (!pages.supported) (void)hipGetLastError();
    return pages;
  }
  static hipError_t granularity(int ordinal, const VirtualMemoryCapability&, std::size_t* bytes) {
    const hipMemAllocationProp wanted = properties(ordinal);
    return hipMemGetAllocationGranularity(bytes, &wanted, hipMemAllocationGranularityMinimum);
  }
  /// HIP 6.4 lets go of a part of what it refuses to free, and crashes at the third call. What it
  /// has refused once is not asked again. Threads outlive destructors, so this is never destroyed.
  struct RefusedFrees {
    std::mutex mutex;
    std::set<Address> addresses;
  };
  static RefusedFrees& refusedFrees() {
    static RefusedFrees& all = *new RefusedFrees;
    return all;
  }
  static hipError_t reserve(std::size_t bytes, Address* address) {
    RefusedFrees& refused = refusedFrees();
    const std::lock_guard lock(refused.mutex);
    void* range = nullptr;
    const hipError_t error = hipMemAddressReserve(&range, bytes, 0, nullptr, 0);
    *address = toAddress(range);
    if (error != hipSuccess) return error;
    refused.addresses.erase(*address);
    // HIP 5.2 succeeds, and reserves nothing.
    return range == nullptr ? hipErrorMemoryAllocation : error;
  }
  static hipError_t freeReservation(Address address, std::size_t bytes) {
    RefusedFrees& refused = refusedFrees();
    const std::lock_guard lock(refused.mutex);
    if (refused.addresses.contains(address)) return hipErrorInvalidValue;
    const hipError_t error = hipMemAddressFree(toPointer(address), bytes);
    try {
      if (error != hipSuccess) refused.addresses.insert(address);
    } catch (const std::bad_alloc&) {
    }
    return error;
  }
  /// Not every runtime looks at the size before it maps the page.
  static hipError_t create(int ordinal, const VirtualMemoryCapability& pages, std::size_t bytes,
                           Page* page) {
    if (pages.granularity == 0 || bytes % pages.granularity != 0) return hipErrorInvalidValue;
    const hipMemAllocationProp wanted = properties(ordinal);
    hipMemGenericAllocationHandle_t handle = nullptr;
    const hipError_t error = hipMemCreate(&handle, bytes, &wanted, 0);
    page->raw = reinterpret_cast<std::uintptr_t>(handle);
    return error;
  }
  /// These headers know no pages of host memory.
  static hipError_t createHost(int, HostPages, std::size_t, Page*) { return hipErrorNotSupported; }
  static hipMemGenericAllocationHandle_t handleOf(Page page) {
    return reinterpret_cast<hipMemGenericAllocationHandle_t>(std::uintptr_t(page.raw));
  }
  static hipError_t release(Page page) { return hipMemRelease(handleOf(page)); }
  static hipError_t map(Address address, std::size_t bytes, Page page) {
    return hipMemMap(toPointer(address), bytes, 0, handleOf(page), 0);
  }
  using Access = hipMemAccessDesc;
  static Access readAndWrite(int ordinal) {
    hipMemAccessDesc access{};
    access.location.type = hipMemLocationTypeDevice;
    access.location.id = ordinal;
    access.flags = hipMemAccessFlagsProtReadWrite;
    return access;
  }
  static hipError_t setAccess(Address address, std::size_t bytes, const Access* who,
                              std::size_t count) {
    return hipMemSetAccess(toPointer(address), bytes, who, count);
  }
  /// HIP 6.4 unmaps one page a call. Of several it unmaps none, and says nothing; of an address
  /// without a page it crashes.
  static constexpr bool kUnmapsSeveral = false;
  static hipError_t unmap(Address address, std::size_t bytes) {
    return hipMemUnmap(toPointer(address), bytes);
  }
  static hipError_t exportPage(Page, int*) { return hipErrorNotSupported; }
  static hipError_t importPage(int, Page*) { return hipErrorNotSupported; }
  static hipError_t exportToFabric(Page, FabricHandle*) { return hipErrorNotSupported; }
  static hipError_t importFromFabric(FabricHandle, Page*) { return hipErrorNotSupported; }
};

}  // namespace cistern::hip
