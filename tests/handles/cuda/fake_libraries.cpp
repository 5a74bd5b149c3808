// NVIDIA's libraries without a device.
#include <cstring>

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cudnn.h>
#include <cusolverDn.h>
#include <cusparse.h>

#include "cistern/handles/cublas.hpp"
#include "cistern/handles/cudnn.hpp"
#include "cistern/handles/cusolver.hpp"
#include "cistern/handles/cusparse.hpp"
#include "tests/handles/bound/fake_vendor.hpp"

#define FAKE_LIBRARY(Status, ok, bad, Handle, create, destroy, set, get) \
  CISTERN_FAKE_HANDLE(Status, ok, bad, Handle, create, destroy)          \
  CISTERN_FAKE_SET_STREAM(Status, ok, Handle, cudaStream_t, set)         \
  CISTERN_FAKE_GET_STREAM(Status, ok, Handle, cudaStream_t, get)

FAKE_LIBRARY(cublasStatus_t, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_ALLOC_FAILED, cublasHandle_t,
             cublasCreate_v2, cublasDestroy_v2, cublasSetStream_v2, cublasGetStream_v2)
CISTERN_FAKE_HANDLE(cublasStatus_t, CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_ALLOC_FAILED,
                    cublasLtHandle_t, cublasLtCreate, cublasLtDestroy)
FAKE_LIBRARY(cusparseStatus_t, CUSPARSE_STATUS_SUCCESS, CUSPARSE_STATUS_INSUFFICIENT_RESOURCES,
             cusparseHandle_t, cusparseCreate, cusparseDestroy, cusparseSetStream,
             cusparseGetStream)
FAKE_LIBRARY(cusolverStatus_t, CUSOLVER_STATUS_SUCCESS, CUSOLVER_STATUS_ALLOC_FAILED,
             cusolverDnHandle_t, cusolverDnCreate, cusolverDnDestroy, cusolverDnSetStream,
             cusolverDnGetStream)
FAKE_LIBRARY(cudnnStatus_t, CUDNN_STATUS_SUCCESS, CUDNN_STATUS_ALLOC_FAILED, cudnnHandle_t,
             cudnnCreate, cudnnDestroy, cudnnSetStream, cudnnGetStream)

extern "C" cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void* memory,
                                                std::size_t bytes) {
  auto* const state = reinterpret_cast<cistern::test::FakeState*>(handle);
  state->workspace = memory;
  state->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}
extern "C" const char* cublasGetStatusName(cublasStatus_t) { return "CUBLAS_STATUS_ALLOC_FAILED"; }
extern "C" const char* cublasGetStatusString(cublasStatus_t) { return "no room"; }
extern "C" const char* cublasLtGetStatusName(cublasStatus_t) { return "LT_ALLOC_FAILED"; }
extern "C" const char* cublasLtGetStatusString(cublasStatus_t) { return "no room"; }
extern "C" const char* cusparseGetErrorName(cusparseStatus_t) { return "CUSPARSE_NO_RESOURCES"; }
extern "C" const char* cusparseGetErrorString(cusparseStatus_t) { return "no room"; }
extern "C" const char* cudnnGetErrorString(cudnnStatus_t) { return "CUDNN_ALLOC_FAILED"; }
extern "C" void cudnnGetLastErrorString(char* text, std::size_t size) {
  std::strncpy(text, "no room at all", size);
}

namespace cistern {

const handles::VendorRuntime& cuda::runtime() { return test::FakeRuntime::table(); }

namespace test {

std::vector<BoundLibrary> boundLibraries() {
  const auto state = [](auto* handle) { return reinterpret_cast<FakeState*>(handle); };
  return {
      {"cuBLAS", "cublasCreate", "CUBLAS_STATUS_ALLOC_FAILED (3): no room", false,
       [=] { return state(getCurrentCUDABlasHandle()); }},
      {"cuBLASLt", "cublasLtCreate", "LT_ALLOC_FAILED (3): no room", false,
       [=] { return state(getCurrentCUDABlasLtHandle()); }, /*has_stream=*/false},
      {"cuSPARSE", "cusparseCreate", "CUSPARSE_NO_RESOURCES (11): no room", true,
       [=] { return state(getCurrentCUDASparseHandle()); }},
      {"cuSOLVER", "cusolverDnCreate", "CUSOLVER_STATUS_ALLOC_FAILED (2)", true,
       [=] { return state(getCurrentCUDASolverDnHandle()); }},
      {"cuDNN", "cudnnCreate", "no room at all", false, [=] { return state(getCudnnHandle()); }},
  };
}

}  // namespace test
}  // namespace cistern
