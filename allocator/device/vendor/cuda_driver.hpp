// The driver functions that the CUDA runtime has no call for: virtual memory, and the current
// context. They are fetched through the runtime, never linked. A program linked to libcuda does not
// start on a machine without a driver.
#pragma once

#include <cuda.h>  // types and declarations only

#include "allocator/device/vendor/cuda_runtime.hpp"

namespace cistern::cuda {

/// The attributes that the copies of a batch have in common, as the driver reads them
/// (CUmemcpyAttributes).
struct BatchAttributes {
  static constexpr int kInStreamOrder = 1;
  int source_order;
  int source_kind, source_number, target_kind, target_number;  ///< hints of places
  unsigned flags;
};
/// cuMemcpyBatchAsync of CUDA 12.8: to, from, bytes, how many; the attributes, the copy from which
/// on each holds, how many; the number of a copy that failed; the stream.
using CopyBatch = CUresult (*)(CUdeviceptr*, CUdeviceptr*, std::size_t*, std::size_t,
                               BatchAttributes*, std::size_t*, std::size_t, std::size_t*, CUstream);

/// The driver's functions, or the reason for their absence.
struct Driver {
  decltype(&::cuCtxGetCurrent) ctx_get_current = nullptr;
  decltype(&::cuCtxSetCurrent) ctx_set_current = nullptr;
  decltype(&::cuDeviceGet) device_get = nullptr;
  decltype(&::cuDeviceGetName) device_get_name = nullptr;
  decltype(&::cuDeviceGetAttribute) device_get_attribute = nullptr;
  decltype(&::cuDevicePrimaryCtxRetain) primary_ctx_retain = nullptr;
  decltype(&::cuMemGetAllocationGranularity) granularity = nullptr;
  decltype(&::cuMemAddressReserve) address_reserve = nullptr;
  decltype(&::cuMemAddressFree) address_free = nullptr;
  decltype(&::cuMemCreate) create = nullptr;
  decltype(&::cuMemRelease) release = nullptr;
  decltype(&::cuMemMap) map = nullptr;
  decltype(&::cuMemSetAccess) set_access = nullptr;
  decltype(&::cuMemUnmap) unmap = nullptr;
  decltype(&::cuMemExportToShareableHandle) export_page = nullptr;
  decltype(&::cuMemImportFromShareableHandle) import_page = nullptr;

  CopyBatch copy_batch = nullptr;  ///< null in a driver before CUDA 12.8

  cudaError_t error = cudaSuccess;  ///< not cudaSuccess: a function could not be found
  const char* missing = "";         ///< then its name; the functions after it are null too
};

/// Numbers mean the same in the driver's and in the runtime's enumeration of errors.
inline cudaError_t asRuntime(CUresult result) { return static_cast<cudaError_t>(result); }

/// Looks `symbol` up in the driver, in the form it had in CUDA 12.0; no-op after a failure.
template <class Function>
void fetch(Driver& driver, const char* symbol, Function& function) {
  if (driver.error != cudaSuccess) return;
  void* entry = nullptr;  // the call leaves its outputs untouched when it fails
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  driver.error = cudaGetDriverEntryPointByVersion(symbol, &entry, 12000, cudaEnableDefault, &found);
  if (driver.error == cudaSuccess && (found != cudaDriverEntryPointSuccess || entry == nullptr)) {
    driver.error = cudaErrorSymbolNotFound;
  }
  if (driver.error != cudaSuccess) {
    driver.missing = symbol;
    return;
  }
  function = reinterpret_cast<Function>(entry);
}

/// Null where the driver does not have it. Pre: its form is that of `version`.
template <class Function>
void fetchIfThere(const char* symbol, unsigned version, Function& function) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(symbol, &entry, version, cudaEnableDefault, &found);
  if (error == cudaSuccess && found == cudaDriverEntryPointSuccess)
    function = reinterpret_cast<Function>(entry);
}

inline Driver loadDriver() {
  Driver driver;
  fetch(driver, "cuCtxGetCurrent", driver.ctx_get_current);
  fetch(driver, "cuCtxSetCurrent", driver.ctx_set_current);
  fetch(driver, "cuDeviceGet", driver.device_get);
  fetch(driver, "cuDeviceGetName", driver.device_get_name);
  fetch(driver, "cuDeviceGetAttribute", driver.device_get_attribute);
  fetch(driver, "cuDevicePrimaryCtxRetain", driver.primary_ctx_retain);
  fetch(driver, "cuMemGetAllocationGranularity", driver.granularity);
  fetch(driver, "cuMemAddressReserve", driver.address_reserve);
  fetch(driver, "cuMemAddressFree", driver.address_free);
  fetch(driver, "cuMemCreate", driver.create);
  fetch(driver, "cuMemRelease", driver.release);
  fetch(driver, "cuMemMap", driver.map);
  fetch(driver, "cuMemSetAccess", driver.set_access);
  fetch(driver, "cuMemUnmap", driver.unmap);
  fetch(driver, "cuMemExportToShareableHandle", driver.export_page);
  fetch(driver, "cuMemImportFromShareableHandle", driver.import_page);
  if (driver.error == cudaSuccess) fetchIfThere("cuMemcpyBatchAsync", 12080, driver.copy_batch);
  return driver;
}

/// Fetched once, at the first call. Pre for using the functions: error == cudaSuccess. open has
/// checked that before a device exists to call them for.
inline const Driver& driver() {
  static const Driver loaded = loadDriver();
  return loaded;
}

}  // namespace cistern::cuda
