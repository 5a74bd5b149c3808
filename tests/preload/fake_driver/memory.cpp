// Memory of the fake driver.
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

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
FAKE CUresult cuPointerGetAttribute(void* out, CUpointer_attribute what, CUdeviceptr pointer) {
  FAKE_BEGIN("cuPointerGetAttribute");
  if (what == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE)
    *static_cast<int*>(out) = around(current(), pointer) != nullptr;
  if (what == CU_POINTER_ATTRIBUTE_CONTEXT) *static_cast<CUcontext*>(out) = nullptr;
  if (what == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) *static_cast<unsigned*>(out) = CU_MEMORYTYPE_DEVICE;
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

// ---- Virtual memory -----------------------------------------------------------------------------

namespace {
std::mutex exportable_mutex;
auto& exportable = *new std::set<std::uint64_t>;  // pages that were made so; under exportable_mutex

// A step of virtual memory that the environment names in FAKE_REFUSES.
bool refuses(std::string_view function) {
  const char* const refused = std::getenv("FAKE_REFUSES");
  return refused != nullptr && function == refused;
}
}  // namespace

FAKE CUresult cuMemGetAllocationGranularity(size_t* bytes, const CUmemAllocationProp*,
                                            CUmemAllocationGranularity_flags) {
  return *bytes = current().sim->virtualMemory().granularity, CUDA_SUCCESS;
}
FAKE CUresult cuMemAddressReserve(CUdeviceptr* out, size_t bytes, size_t, CUdeviceptr,
                                  unsigned long long) {
  FAKE_BEGIN("cuMemAddressReserve");
  if (refuses("cuMemAddressReserve")) return CUDA_ERROR_UNKNOWN;
  const cistern::Result<cistern::Address> range = current().sim->reserve(bytes);
  if (range) *out = range.value();
  return CUresult(codeOf(range));
}
FAKE CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  FAKE_BEGIN("cuMemAddressFree");
  return CUresult(codeOf(current().sim->freeReservation(address, bytes)));
}
FAKE CUresult cuMemCreate(CUmemGenericAllocationHandle* out, size_t bytes,
                          const CUmemAllocationProp* wanted, unsigned long long) {
  FAKE_BEGIN("cuMemCreate");
  if (refuses("cuMemCreate")) return CUDA_ERROR_UNKNOWN;
  const bool exports = wanted->requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  if (exports && std::getenv("FAKE_REFUSES_DESCRIPTORS") != nullptr)
    return CUDA_ERROR_NOT_PERMITTED;
  const bool rdma = wanted->allocFlags.gpuDirectRDMACapable != 0;
  if (rdma && std::getenv("FAKE_REFUSES_RDMA") != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (rdma) fake::count("cuMemCreate for network cards");
  Device& there = wanted->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? device(wanted->location.id)
                                                                       : current();
  const cistern::Result<cistern::Page> page = there.sim->createPage(bytes);
  if (!page) return CUresult(codeOf(page));
  *out = page.value().raw;
  const std::lock_guard lock(exportable_mutex);
  if (exports) exportable.insert(*out);
  return CUDA_SUCCESS;
}
FAKE CUresult cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle page,
                                           CUmemAllocationHandleType, unsigned long long) {
  FAKE_BEGIN("cuMemExportToShareableHandle");
  const std::lock_guard lock(exportable_mutex);
  if (exportable.count(page) == 0) return CUDA_ERROR_INVALID_VALUE;
  const cistern::Result<int> descriptor = current().sim->exportPage(cistern::Page{page});
  if (descriptor) *static_cast<int*>(out) = descriptor.value();
  return CUresult(codeOf(descriptor));
}
FAKE CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* descriptor,
                                             CUmemAllocationHandleType) {
  FAKE_BEGIN("cuMemImportFromShareableHandle");
  const cistern::Result<cistern::Page> page =
      current().sim->importPage(int(reinterpret_cast<std::intptr_t>(descriptor)));
  if (page) *out = page.value().raw;
  return CUresult(codeOf(page));
}
FAKE CUresult cuMemRelease(CUmemGenericAllocationHandle page) {
  FAKE_BEGIN("cuMemRelease");
  {
    const std::lock_guard lock(exportable_mutex);
    exportable.erase(page);
  }
  return CUresult(codeOf(current().sim->releasePage(cistern::Page{page})));
}
FAKE CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle page,
                       unsigned long long) {
  FAKE_BEGIN("cuMemMap");
  if (refuses("cuMemMap")) return CUDA_ERROR_UNKNOWN;
  return CUresult(codeOf(current().sim->map(address, bytes, cistern::Page{page})));
}
FAKE CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc*,
                             size_t who) {
  FAKE_BEGIN(who > 1 ? "cuMemSetAccess for peers" : "cuMemSetAccess");
  if (refuses("cuMemSetAccess")) return CUDA_ERROR_UNKNOWN;
  return CUresult(codeOf(current().sim->setAccess(address, bytes)));
}
FAKE CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  FAKE_BEGIN("cuMemUnmap");
  if (refuses("cuMemUnmap")) return CUDA_ERROR_UNKNOWN;
  return CUresult(codeOf(current().sim->unmap(address, bytes)));
}
