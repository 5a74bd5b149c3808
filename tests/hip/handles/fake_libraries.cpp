// MIOpen, rocBLAS, hipBLAS, hipSPARSE and hipSOLVER, without what they compute.
#include <hipblas/hipblas.h>
#include <hipsolver/hipsolver.h>
#include <hipsparse/hipsparse.h>
#include <miopen/miopen.h>
#include <rocblas/rocblas.h>

#include "cistern/handles/hip.hpp"
#include "tests/handles/bound/fake_vendor.hpp"

#define FAKE_LIBRARY(Status, ok, bad, Handle, create, destroy, set, get) \
  CISTERN_FAKE_HANDLE(Status, ok, bad, Handle, create, destroy)          \
  CISTERN_FAKE_SET_STREAM(Status, ok, Handle, hipStream_t, set)          \
  CISTERN_FAKE_GET_STREAM(Status, ok, Handle, hipStream_t, get)

FAKE_LIBRARY(miopenStatus_t, miopenStatusSuccess, miopenStatusAllocFailed, miopenHandle_t,
             miopenCreate, miopenDestroy, miopenSetStream, miopenGetStream)
FAKE_LIBRARY(rocblas_status, rocblas_status_success, rocblas_status_memory_error, rocblas_handle,
             rocblas_create_handle, rocblas_destroy_handle, rocblas_set_stream, rocblas_get_stream)
FAKE_LIBRARY(hipblasStatus_t, HIPBLAS_STATUS_SUCCESS, HIPBLAS_STATUS_ALLOC_FAILED, hipblasHandle_t,
             hipblasCreate, hipblasDestroy, hipblasSetStream, hipblasGetStream)
FAKE_LIBRARY(hipsparseStatus_t, HIPSPARSE_STATUS_SUCCESS, HIPSPARSE_STATUS_ALLOC_FAILED,
             hipsparseHandle_t, hipsparseCreate, hipsparseDestroy, hipsparseSetStream,
             hipsparseGetStream)
FAKE_LIBRARY(hipsolverStatus_t, HIPSOLVER_STATUS_SUCCESS, HIPSOLVER_STATUS_ALLOC_FAILED,
             hipsolverHandle_t, hipsolverCreate, hipsolverDestroy, hipsolverSetStream,
             hipsolverGetStream)

extern "C" const char* miopenGetErrorString(miopenStatus_t) { return "miopenStatusAllocFailed"; }
extern "C" const char* rocblas_status_to_string(rocblas_status) {
  return "rocblas_status_memory_error";
}
extern "C" const char* hipblasStatusToString(hipblasStatus_t) {
  return "HIPBLAS_STATUS_ALLOC_FAILED";
}

namespace cistern::test {

std::vector<BoundLibrary> boundLibraries() {
  const auto state = [](auto* handle) { return reinterpret_cast<FakeState*>(handle); };
  return {
      {"MIOpen", "miopenCreate", "miopenStatusAllocFailed (4)", false,
       [=] { return state(getMiopenHandle()); }},
      {"rocBLAS", "rocblas_create_handle", "rocblas_status_memory_error (5)", false,
       [=] { return state(getCurrentRocblasHandle()); }},
      {"hipBLAS", "hipblasCreate", "HIPBLAS_STATUS_ALLOC_FAILED (2)", false,
       [=] { return state(getCurrentHipblasHandle()); }},
      {"hipSPARSE", "hipsparseCreate", "HIPSPARSE_STATUS_ALLOC_FAILED (2)", true,
       [=] { return state(getCurrentHipsparseHandle()); }},
      {"hipSOLVER", "hipsolverCreate", "HIPSOLVER_STATUS_ALLOC_FAILED (2)", true,
       [=] { return state(getCurrentHipsolverHandle()); }},
  };
}

}  // namespace cistern::test
