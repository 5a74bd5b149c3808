// Memory of the fake driver.
#include <cstdlib>
#include <cstring>

#include "tests/preload/fake_device/fake_pools.hpp"
#include "tests/preload/fake_driver/state.hpp"

using namespace fake;

namespace {

CUresult allocate(CUdeviceptr* out, size_t bytes) {
  std::uint64_t address = 0;
  const auto result = CUresult(fake::allocate(current(), &address, bytes));
  if (result == CUDA_SUCCESS) *out = address;
  return result;
}
CUresult allocateFrom(Pool pool, CUdeviceptr* out, size_t bytes) {
  const CUresult result = allocate(out, bytes);
  if (result == CUDA_SUCCESS) poolTakes(pool, *out, bytes);
  return result;
}
CUresult allocateOrdered(CUdeviceptr* out, size_t bytes) {
  CUdevice device = 0;
  if (cuCtxGetDevice(&device) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_CONTEXT;
  return allocateFrom(currentPool(device), out, bytes);
}
CUresult release(CUdeviceptr address) {
  poolGives(address);
  return CUresult(fake::release(address));
}

}  // namespace

FAKE CUresult cuMemAlloc_v2(CUdeviceptr* out, size_t bytes) {
  FAKE_BEGIN("cuMemAlloc");
  return allocate(out, bytes);
}
// A version that has no hook: its sizes are 32 bits wide.
extern "C" CUresult oldMemAlloc(unsigned*, unsigned) __asm__("cuMemAlloc");
FAKE CUresult oldMemAlloc(unsigned*, unsigned) {
  count("cuMemAlloc_v1");
  return CUDA_ERROR_NOT_SUPPORTED;
}
FAKE CUresult cuMemFree_v2(CUdeviceptr address) {
  FAKE_BEGIN("cuMemFree");
  return address == 0 ? CUDA_SUCCESS : release(address);
}
FAKE CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  FAKE_BEGIN("cuMemGetInfo");
  const cistern::Result<cistern::MemoryInfo> info = current().sim->memoryInfo();
  if (!info) return CUresult(codeOf(info));
  *free_bytes = info.value().free_bytes;
  return *total = info.value().total_bytes, CUDA_SUCCESS;
}
FAKE CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr pointer) {
  FAKE_BEGIN("cuMemGetAddressRange");
  const auto* const found = around(current(), pointer);
  if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
  *base = found->first;
  return *bytes = found->second, CUDA_SUCCESS;
}
FAKE CUresult cuMemAllocManaged(CUdeviceptr* out, size_t bytes, unsigned) {
  FAKE_BEGIN("cuMemAllocManaged");
  return allocate(out, bytes);
}
FAKE CUresult cuMemAllocPitch_v2(CUdeviceptr* out, size_t* pitch, size_t width, size_t height,
                                 unsigned) {
  FAKE_BEGIN("cuMemAllocPitch");
  return *pitch = (width + 511) / 512 * 512, allocate(out, *pitch * height);
}
// Of pages only, not of plain memory.
FAKE CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  FAKE_BEGIN("cuMemRetainAllocationHandle");
  if (around(current(), reinterpret_cast<CUdeviceptr>(address)) != nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  return *handle = 1, CUDA_SUCCESS;
}
// A page of the host's memory is the host's to the driver, whatever is made of it.
FAKE CUresult cuPointerGetAttribute(void* out, CUpointer_attribute what, CUdeviceptr pointer) {
  FAKE_BEGIN("cuPointerGetAttribute");
  const bool host = liesOnHost(pointer);
  if (what == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE)
    *static_cast<int*>(out) = around(current(), pointer) != nullptr;
  if (what == CU_POINTER_ATTRIBUTE_CONTEXT) *static_cast<CUcontext*>(out) = nullptr;
  if (what == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    *static_cast<unsigned*>(out) = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  if (what == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    *static_cast<int*>(out) = host ? -1 : currentContext()->ordinal;
  if (what == CU_POINTER_ATTRIBUTE_DEVICE_POINTER) *static_cast<CUdeviceptr*>(out) = pointer;
  if (what == CU_POINTER_ATTRIBUTE_HOST_POINTER) {
    if (!host) return CUDA_ERROR_INVALID_VALUE;
    *static_cast<void**>(out) = reinterpret_cast<void*>(pointer);
  }
  return CUDA_SUCCESS;
}
FAKE CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* which, void** out,
                                     CUdeviceptr pointer) {
  FAKE_BEGIN("cuPointerGetAttributes");
  for (unsigned i = 0; i < count; ++i) {
    if (cuPointerGetAttribute(out[i], which[i], pointer) != CUDA_SUCCESS)
      *static_cast<void**>(out[i]) = nullptr;
  }
  return CUDA_SUCCESS;
}

// ---- Handles for other processes ----------------------------------------------------------------

namespace {
// What opens a handle of the driver's own: where nothing is.
constexpr char kOwnHandle[] = "a handle of the fake driver's";
constexpr CUdeviceptr kOpenedOwn = 0x7000000;

CUresult openOwn(CUdeviceptr* out, const CUipcMemHandle& handle) {
  if (std::string(handle.reserved, strnlen(handle.reserved, 64)) != kOwnHandle)
    return CUDA_ERROR_INVALID_HANDLE;
  return *out = kOpenedOwn, CUDA_SUCCESS;
}
}  // namespace

FAKE CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr) {
  FAKE_BEGIN("cuIpcGetMemHandle");
  *handle = {};
  std::string(kOwnHandle).copy(handle->reserved, 64);
  return CUDA_SUCCESS;
}
FAKE CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle, unsigned) {
  FAKE_BEGIN("cuIpcOpenMemHandle");
  return openOwn(out, handle);
}
extern "C" CUresult oldIpcOpen(CUdeviceptr*, CUipcMemHandle,
                               unsigned) __asm__("cuIpcOpenMemHandle");
FAKE CUresult oldIpcOpen(CUdeviceptr* out, CUipcMemHandle handle, unsigned) {
  FAKE_BEGIN("cuIpcOpenMemHandle_v1");
  return openOwn(out, handle);
}
FAKE CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  FAKE_BEGIN("cuIpcCloseMemHandle");
  return pointer == kOpenedOwn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// ---- Stream-ordered -----------------------------------------------------------------------------

namespace {

CUresult found(CUmemoryPool* out, Pool pool) {
  *out = static_cast<CUmemoryPool>(pool);
  return pool == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
CUresult valid(bool done) { return done ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

}  // namespace

extern "C" CUresult cuMemSetMemPool(CUmemLocation*, CUmemAllocationType, CUmemoryPool);

FAKE CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return found(pool, defaultPool(device));
}
FAKE CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return found(pool, currentPool(device));
}
FAKE CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return valid(setCurrentPool(device, pool));
}
FAKE CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type,
                              CUmemoryPool pool) {
  const bool of_device = location->type == CU_MEM_LOCATION_TYPE_DEVICE;
  if (!of_device || type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_NOT_SUPPORTED;
  return cuDeviceSetMemPool(location->id, pool);
}
FAKE CUresult cuMemPoolCreate(CUmemoryPool* out, const CUmemPoolProps* wanted) {
  return found(out, makePool(wanted->location.id));
}
FAKE CUresult cuMemPoolDestroy(CUmemoryPool pool) { return valid(destroyPool(pool)); }
FAKE CUresult cuMemPoolSetAccess(CUmemoryPool, const CUmemAccessDesc*, size_t) {
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* out) {
  return valid(getAttribute(pool, int(attribute), out));
}
FAKE CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return valid(setAttribute(pool, int(attribute), value));
}
FAKE CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  return valid(trimPool(pool, keep));
}
FAKE CUresult cuMemAllocAsync(CUdeviceptr* out, size_t bytes, CUstream) {
  FAKE_BEGIN("cuMemAllocAsync");
  return allocateOrdered(out, bytes);
}
FAKE CUresult cuMemAllocAsync_ptsz(CUdeviceptr* out, size_t bytes, CUstream) {
  FAKE_BEGIN("cuMemAllocAsync_ptsz");
  return allocateOrdered(out, bytes);
}
FAKE CUresult cuMemAllocFromPoolAsync(CUdeviceptr* out, size_t bytes, CUmemoryPool pool, CUstream) {
  FAKE_BEGIN("cuMemAllocFromPoolAsync");
  return allocateFrom(pool, out, bytes);
}
FAKE CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) {
  FAKE_BEGIN("cuMemFreeAsync");
  return release(address);
}
FAKE CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream) {
  FAKE_BEGIN("cuMemFreeAsync_ptsz");
  return release(address);
}
