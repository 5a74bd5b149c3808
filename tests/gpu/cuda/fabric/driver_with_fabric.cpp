#include "tests/gpu/cuda/fabric/driver_with_fabric.hpp"

#include <atomic>
#include <cstring>
#include <mutex>
#include <set>
#include <string_view>

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace {

using cistern::test::Fabric;

std::atomic<Fabric> fabric{Fabric::kOpen};

decltype(&::cuDeviceGetAttribute) real_attribute = nullptr;
decltype(&::cuMemCreate) real_create = nullptr;
decltype(&::cuMemExportToShareableHandle) real_export = nullptr;
decltype(&::cuMemImportFromShareableHandle) real_import = nullptr;

std::mutex mutex;
std::set<CUmemGenericAllocationHandle> on_fabric;  // pages that were made for it; under mutex

struct Name {
  char mark[8];
  int descriptor;  // stays open: it is a test's
};
constexpr char kMark[8] = "fabric!";

CUresult attribute(int* value, CUdevice_attribute which, CUdevice device) {
  if (which != CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED)
    return real_attribute(value, which, device);
  if (fabric == Fabric::kUnknown) return CUDA_ERROR_INVALID_VALUE;
  *value = 1;
  return CUDA_SUCCESS;
}

CUresult create(CUmemGenericAllocationHandle* page, size_t bytes, const CUmemAllocationProp* how,
                unsigned long long flags) {
  CUmemAllocationProp plain = *how;
  const bool asked = (how->requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0;
  if (asked && fabric != Fabric::kOpen && fabric != Fabric::kNoHandle)
    return CUDA_ERROR_NOT_PERMITTED;
  if (asked) plain.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  const CUresult result = real_create(page, bytes, &plain, flags);
  const std::lock_guard lock(mutex);
  if (result == CUDA_SUCCESS && asked) on_fabric.insert(*page);
  if (result == CUDA_SUCCESS && !asked) on_fabric.erase(*page);
  return result;
}

CUresult exportPage(void* handle, CUmemGenericAllocationHandle page, CUmemAllocationHandleType by,
                    unsigned long long flags) {
  if (by != CU_MEM_HANDLE_TYPE_FABRIC) return real_export(handle, page, by, flags);
  const std::lock_guard lock(mutex);
  if (fabric != Fabric::kOpen || on_fabric.count(page) == 0) return CUDA_ERROR_INVALID_VALUE;
  Name name{};
  std::memcpy(name.mark, kMark, sizeof kMark);
  const CUresult result =
      real_export(&name.descriptor, page, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  std::memset(handle, 0, sizeof(CUmemFabricHandle));
  std::memcpy(handle, &name, sizeof name);
  return result;
}

CUresult importPage(CUmemGenericAllocationHandle* page, void* handle,
                    CUmemAllocationHandleType by) {
  if (by != CU_MEM_HANDLE_TYPE_FABRIC) return real_import(page, handle, by);
  Name name{};
  std::memcpy(&name, handle, sizeof name);
  if (std::memcmp(name.mark, kMark, sizeof kMark) != 0) return CUDA_ERROR_INVALID_VALUE;
  return real_import(page, reinterpret_cast<void*>(std::intptr_t(name.descriptor)),
                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

template <class Function>
void replace(void** found, Function& real, Function with) {
  real = reinterpret_cast<Function>(*found);
  *found = reinterpret_cast<void*>(with);
}

}  // namespace

void cistern::test::setFabric(Fabric wanted) { fabric = wanted; }

extern "C" {

cudaError_t __real_cudaGetDriverEntryPointByVersion(const char*, void**, unsigned int,
                                                    unsigned long long,
                                                    cudaDriverEntryPointQueryResult*);

cudaError_t __wrap_cudaGetDriverEntryPointByVersion(const char* symbol, void** function,
                                                    unsigned int version, unsigned long long flags,
                                                    cudaDriverEntryPointQueryResult* found) {
  const cudaError_t error =
      __real_cudaGetDriverEntryPointByVersion(symbol, function, version, flags, found);
  if (error != cudaSuccess || *function == nullptr) return error;
  const std::string_view name = symbol;
  if (name == "cuDeviceGetAttribute") replace(function, real_attribute, &attribute);
  if (name == "cuMemCreate") replace(function, real_create, &create);
  if (name == "cuMemExportToShareableHandle") replace(function, real_export, &exportPage);
  if (name == "cuMemImportFromShareableHandle") replace(function, real_import, &importPage);
  return error;
}
}
