// Pages and addresses of CUDA's driver. See driver.hpp.
#include "interop/preload/driver/cuda/driver.hpp"

namespace cistern::preload::cuda {
namespace {

CUmemAllocationProp pageProperties(int device, PageKind kind) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.allocFlags.gpuDirectRDMACapable = kind.rdma ? 1 : 0;
  if (kind.exportable) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

}  // namespace

std::size_t Functions::granularity(int device, PageKind* kind) const noexcept {
  const auto has = [&](CUdevice_attribute which) {
    int value = 0;
    return cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS && value != 0;
  };
  if (!has(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) return 0;
  *kind = {has(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED),
           has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)};
  std::size_t bytes = 0;
  const CUmemAllocationProp wanted = pageProperties(device, *kind);
  const Code asked =
      cuMemGetAllocationGranularity(&bytes, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  return asked == CUDA_SUCCESS ? bytes : 0;
}

Code Functions::reserve(Address* out, std::size_t bytes) const noexcept {
  CUdeviceptr address = 0;
  const Code result = cuMemAddressReserve(&address, bytes, 0, 0, 0);
  *out = address;
  return result;
}
Code Functions::freeReservation(Address address, std::size_t bytes) const noexcept {
  return cuMemAddressFree(address, bytes);
}

Code Functions::createPage(std::uint64_t* page, std::size_t bytes, int device,
                           PageKind kind) const noexcept {
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp wanted = pageProperties(device, kind);
  const Code result = cuMemCreate(&handle, bytes, &wanted, 0);
  *page = handle;
  return result;
}
Code Functions::releasePage(std::uint64_t page) const noexcept { return cuMemRelease(page); }

Code Functions::exportPage(std::uint64_t page, int* descriptor) const noexcept {
  return cuMemExportToShareableHandle(descriptor, page, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      0);
}
Code Functions::importPage(int descriptor, std::uint64_t* page) const noexcept {
  CUmemGenericAllocationHandle handle = 0;
  const Code result =
      cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(std::intptr_t(descriptor)),
                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  *page = handle;
  return result;
}

Code Functions::map(Address address, std::size_t bytes, std::uint64_t page) const noexcept {
  return cuMemMap(address, bytes, 0, page, 0);
}
Code Functions::setAccess(Address address, std::size_t bytes,
                          const std::vector<int>& devices) const {
  std::vector<CUmemAccessDesc> who(devices.size());
  for (std::size_t i = 0; i < who.size(); ++i) {
    who[i].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    who[i].location.id = devices[i];
    who[i].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return cuMemSetAccess(address, bytes, who.data(), who.size());
}
Code Functions::unmap(Address address, std::size_t bytes) const noexcept {
  return cuMemUnmap(address, bytes);
}

}  // namespace cistern::preload::cuda
