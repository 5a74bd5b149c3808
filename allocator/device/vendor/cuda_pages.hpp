// The properties of CUDA's pages, for all code that makes some. It includes only the driver's
// types, and calls nothing by itself.
#pragma once

#include <cuda.h>

#include "allocator/device/page_trial.hpp"
#include "cistern/device.hpp"

namespace cistern::cuda {

/// The driver's claims about pages; the granularity is not set. `get` is cuDeviceGetAttribute.
template <class GetAttribute>
VirtualMemoryCapability claimedPages(int ordinal, GetAttribute get) {
  const auto has = [&](CUdevice_attribute which) {
    int value = 0;
    return get(&value, which, ordinal) == CUDA_SUCCESS && value != 0;
  };
  VirtualMemoryCapability pages;
  pages.supported = has(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  if (!pages.supported) return pages;
  pages.exportable = has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
  pages.fabric = pages.exportable && has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
  pages.rdma = has(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
  return pages;
}

/// Exportable wherever the device can do it: bench_mapping measures the cost. Open to network cards
/// wherever it can: cudaMalloc's memory is.
inline CUmemAllocationProp pageProperties(int ordinal, const VirtualMemoryCapability& pages) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  unsigned handles = CU_MEM_HANDLE_TYPE_NONE;
  if (pages.exportable) handles |= CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (pages.fabric) handles |= CU_MEM_HANDLE_TYPE_FABRIC;
  properties.requestedHandleTypes = CUmemAllocationHandleType(handles);
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = ordinal;
  properties.allocFlags.gpuDirectRDMACapable = pages.rdma ? 1 : 0;
  return properties;
}

/// Pages of the host's memory. On a NUMA node they could be exported, but no handle is requested:
/// all host pages are alike. The numbers are those of CUDA 12.2: older headers do not name them.
inline CUmemAllocationProp hostPageProperties(HostPages kind, int numa_node) {
  constexpr int kHost = 2, kHostNuma = 3;  // CU_MEM_LOCATION_TYPE_HOST, _HOST_NUMA
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  const bool numa = kind == HostPages::kNuma;
  properties.location.type = CUmemLocationType(numa ? kHostNuma : kHost);
  properties.location.id = numa ? numa_node : 0;
  return properties;
}

/// The NUMA node next to the device; 0 where the driver does not tell. `get` is
/// cuDeviceGetAttribute.
template <class GetAttribute>
int numaNodeOf(int ordinal, GetAttribute get) {
  constexpr int kHostNumaId = 134;  // CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID
  int node = 0;
  const bool known = get(&node, CUdevice_attribute(kHostNumaId), ordinal) == CUDA_SUCCESS;
  return known && node > 0 ? node : 0;
}

}  // namespace cistern::cuda
