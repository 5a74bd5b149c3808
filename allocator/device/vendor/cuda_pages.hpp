// The properties of CUDA's pages, for all code that makes some. It includes only the driver's
// types, and calls nothing by itself.
#pragma once

#include <cuda.h>

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

}  // namespace cistern::cuda
