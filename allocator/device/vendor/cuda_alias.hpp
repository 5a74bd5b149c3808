// CUDA's differences from HIP. hip_alias.hpp defines the same names in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "allocator/device/vendor/cuda_copies.hpp"
#include "allocator/device/vendor/cuda_driver.hpp"
#include "allocator/device/vendor/cuda_pages.hpp"
#include "cistern/device.hpp"

namespace cistern::cuda {

inline constexpr const char* kBackend = "cuda";

// ---- What failures say -------------------------------------------------------------------------

// noDeviceText, errorCode, errorName, errorText and runtimeText are in cuda_runtime.hpp.

// ---- Which device is current -------------------------------------------------------------------
// Queried from the driver, not with cudaGetDevice and cudaSetDevice. Setting a thread back with
// cudaSetDevice to its default device would make a context there: hundreds of MB on a device that
// nobody uses. The driver also sees what another copy of the runtime has set.

using Current = CUcontext;

/// The device's primary context, held until the process ends: at exit the driver may be gone.
inline cudaError_t currentFor(int ordinal, Current* current) {
  if (driver().error != cudaSuccess) return driver().error;
  CUdevice device = 0;
  const CUresult found = driver().device_get(&device, ordinal);
  if (found != CUDA_SUCCESS) return asRuntime(found);
  return asRuntime(driver().primary_ctx_retain(current, device));
}
inline cudaError_t getCurrent(Current* current) {
  if (driver().error != cudaSuccess) return driver().error;
  return asRuntime(driver().ctx_get_current(current));
}
inline bool standsForADevice(Current current) { return current != nullptr; }
inline cudaError_t setCurrent(Current current) {
  return asRuntime(driver().ctx_set_current(current));
}

/// Sets a thread back to the context that was current before. Without one, the first device stays:
/// the runtime would choose it at the thread's next call. From a thread that had a context and lost
/// it, the runtime takes no further call (201).
inline cudaError_t setBack(Current before) {
  int here = 0;
  if (before == nullptr && cudaGetDevice(&here) == cudaSuccess && here == 0) return cudaSuccess;
  return setCurrent(before);
}

/// The detail to add to a failure of currentFor.
inline std::string openDetail() {
  return *driver().missing == 0 ? "" : std::string("the driver has no ") + driver().missing;
}

// ---- What the device can do --------------------------------------------------------------------

/// Not cudaGetDeviceProperties: its structure has another size in each version of CUDA.
inline cudaError_t deviceName(int ordinal, std::string* name) {
  char text[256] = "";
  CUdevice device = 0;
  CUresult result = driver().device_get(&device, ordinal);
  if (result == CUDA_SUCCESS) result = driver().device_get_name(text, int(sizeof(text)), device);
  *name = text;
  return asRuntime(result);
}
inline cudaError_t memoryPoolsSupported(int ordinal, int* supported) {
  return cudaDeviceGetAttribute(supported, cudaDevAttrMemoryPoolsSupported, ordinal);
}
/// The first number of the compute capability.
inline cudaError_t computeMajor(int ordinal, int* major) {
  return cudaDeviceGetAttribute(major, cudaDevAttrComputeCapabilityMajor, ordinal);
}
inline cudaError_t interprocessSupported(int ordinal, int* supported) {
  return cudaDeviceGetAttribute(supported, cudaDevAttrIpcEventSupport, ordinal);
}

/// Lets the current device use all memory of malloc on device `of`, past and future.
inline cudaError_t openToCurrent(int of) { return cudaDeviceEnablePeerAccess(of, 0); }

// ---- Pinned host memory ------------------------------------------------------------------------

inline cudaError_t pinnedMalloc(void** memory, std::size_t bytes) {
  return cudaHostAlloc(memory, bytes, cudaHostAllocPortable);
}
inline cudaError_t pinnedFree(void* memory) { return cudaFreeHost(memory); }

// ---- Capture -----------------------------------------------------------------------------------

inline cudaError_t streamCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id) {
  return cudaStreamGetCaptureInfo(stream, status, id, nullptr, nullptr, nullptr, nullptr);
}

// Edges may carry data (a programmatic launch's do). The runtime refuses to name such an edge to a
// caller that does not request the data too. So both calls request it, and drop it.

/// Also the nodes of the frontier, in the runtime's memory: read them before the stream's next
/// call. Valid while the capture is active.
inline cudaError_t streamCaptureFrontier(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                         unsigned long long* id, const cudaGraphNode_t** nodes,
                                         std::size_t* count) {
  const cudaGraphEdgeData* edges = nullptr;
  return cudaStreamGetCaptureInfo(stream, status, id, nullptr, nodes, &edges, count);
}

/// The first *count nodes that `node` follows. Post: *count is their number, if that is less than
/// before.
inline cudaError_t graphDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes,
                                     std::size_t* count) {
  cudaGraphEdgeData few[16] = {};
  std::vector<cudaGraphEdgeData> many(*count > std::size(few) ? *count : 0);
  return cudaGraphNodeGetDependencies(node, nodes, many.empty() ? few : many.data(), count);
}

inline cudaError_t graphDot(cudaGraph_t graph, const char* path) {
  return cudaGraphDebugDotPrint(graph, path, cudaGraphDebugDotFlagsVerbose);
}

// ---- Virtual memory: the driver's own, with integers for addresses and handles -----------------

struct VirtualMemory {
  static VirtualMemoryCapability claimed(int ordinal) {
    VirtualMemoryCapability pages = claimedPages(ordinal, driver().device_get_attribute);
    // They came with CUDA 12.2. A driver that does not know them refuses the first that is tried.
    pages.host_pages = pages.supported;
    return pages;
  }
  static cudaError_t granularity(int ordinal, const VirtualMemoryCapability& pages,
                                 std::size_t* bytes) {
    const CUmemAllocationProp wanted = pageProperties(ordinal, pages);
    return asRuntime(driver().granularity(bytes, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  }
  static cudaError_t reserve(std::size_t bytes, Address* address) {
    CUdeviceptr range = 0;
    const CUresult result = driver().address_reserve(&range, bytes, 0, 0, 0);
    *address = range;
    return asRuntime(result);
  }
  static cudaError_t freeReservation(Address address, std::size_t bytes) {
    return asRuntime(driver().address_free(address, bytes));
  }
  static cudaError_t create(int ordinal, const VirtualMemoryCapability& pages, std::size_t bytes,
                            Page* page) {
    const CUmemAllocationProp wanted = pageProperties(ordinal, pages);
    CUmemGenericAllocationHandle handle = 0;
    const CUresult result = driver().create(&handle, bytes, &wanted, 0);
    page->raw = handle;
    return asRuntime(result);
  }
  static cudaError_t createHost(int ordinal, HostPages kind, std::size_t bytes, Page* page) {
    const int node = numaNodeOf(ordinal, driver().device_get_attribute);
    const CUmemAllocationProp wanted = hostPageProperties(kind, node);
    CUmemGenericAllocationHandle handle = 0;
    const CUresult result = driver().create(&handle, bytes, &wanted, 0);
    page->raw = handle;
    return asRuntime(result);
  }
  static cudaError_t release(Page page) { return asRuntime(driver().release(page.raw)); }
  static cudaError_t map(Address address, std::size_t bytes, Page page) {
    return asRuntime(driver().map(address, bytes, 0, page.raw, 0));
  }
  using Access = CUmemAccessDesc;
  static Access readAndWrite(int ordinal) {
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = ordinal;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return access;
  }
  static cudaError_t setAccess(Address address, std::size_t bytes, const Access* who,
                               std::size_t count) {
    return asRuntime(driver().set_access(address, bytes, who, count));
  }
  static constexpr bool kUnmapsSeveral = true;  ///< pages, in one call
  static cudaError_t unmap(Address address, std::size_t bytes) {
    return asRuntime(driver().unmap(address, bytes));
  }
  static cudaError_t exportPage(Page page, int* descriptor) {
    return asRuntime(
        driver().export_page(descriptor, page.raw, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  }
  static cudaError_t importPage(int descriptor, Page* page) {
    void* const named = reinterpret_cast<void*>(std::intptr_t(descriptor));
    return import(named, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, page);
  }
  static cudaError_t exportToFabric(Page page, FabricHandle* handle) {
    static_assert(sizeof(FabricHandle) == sizeof(CUmemFabricHandle));
    return asRuntime(
        driver().export_page(handle->bytes.data(), page.raw, CU_MEM_HANDLE_TYPE_FABRIC, 0));
  }
  static cudaError_t importFromFabric(FabricHandle handle, Page* page) {
    return import(handle.bytes.data(), CU_MEM_HANDLE_TYPE_FABRIC, page);
  }

 private:
  static cudaError_t import(void* named, CUmemAllocationHandleType by, Page* page) {
    CUmemGenericAllocationHandle handle = 0;
    const CUresult result = driver().import_page(&handle, named, by);
    page->raw = handle;
    return asRuntime(result);
  }
};

}  // namespace cistern::cuda
