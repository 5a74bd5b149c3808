// CUDA's driver: its library, and its pages and addresses.
#include "allocator/device/vendor/cuda_pages.hpp"
#include "interop/preload/driver/driver.hpp"
#include "interop/preload/process/lookup.hpp"

namespace cistern::preload::cuda {

void* driverLibrary() noexcept { return loadedLibrary("libcuda.so.1"); }

Code Functions::whatCaptureSays() const noexcept {
  CUevent event = nullptr;
  if (cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) return CUDA_SUCCESS;
  const Code result = cuEventQuery(event);
  (void)cuEventDestroy_v2(event);
  return result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result;
}

// Nothing here is for other machines.
VirtualMemoryCapability Functions::claimedPages(int device) const noexcept {
  VirtualMemoryCapability pages = cistern::cuda::claimedPages(device, cuDeviceGetAttribute);
  pages.fabric = false;
  pages.host_pages = pages.supported;  // a driver that does not know them refuses the first
  return pages;
}

Code Functions::granularity(std::size_t* bytes, int device,
                            const VirtualMemoryCapability& kind) const noexcept {
  const CUmemAllocationProp wanted = cistern::cuda::pageProperties(device, kind);
  return cuMemGetAllocationGranularity(bytes, &wanted, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
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

static Code create(const Functions& driver, std::uint64_t* page, std::size_t bytes,
                   const CUmemAllocationProp& wanted) noexcept {
  CUmemGenericAllocationHandle handle = 0;
  const Code result = driver.cuMemCreate(&handle, bytes, &wanted, 0);
  *page = handle;
  return result;
}

Code Functions::createPage(std::uint64_t* page, std::size_t bytes, int device,
                           const VirtualMemoryCapability& kind) const noexcept {
  return create(*this, page, bytes, cistern::cuda::pageProperties(device, kind));
}
Code Functions::createHostPage(std::uint64_t* page, std::size_t bytes, int device,
                               HostPages kind) const noexcept {
  const int node = cistern::cuda::numaNodeOf(device, cuDeviceGetAttribute);
  return create(*this, page, bytes, cistern::cuda::hostPageProperties(kind, node));
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
