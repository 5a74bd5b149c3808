#include "cistern/handles/cusolver.hpp"

#include <cusolverDn.h>

#include "cistern/handles/library.hpp"
#include "handles/current_handle.hpp"
#include "handles/vendor/runtime.hpp"

namespace cistern {
namespace {

// The library has no text for its statuses.
const char* nameOf(cusolverStatus_t status) {
  switch (status) {
    case CUSOLVER_STATUS_SUCCESS:
      return "CUSOLVER_STATUS_SUCCESS";
    case CUSOLVER_STATUS_NOT_INITIALIZED:
      return "CUSOLVER_STATUS_NOT_INITIALIZED";
    case CUSOLVER_STATUS_ALLOC_FAILED:
      return "CUSOLVER_STATUS_ALLOC_FAILED";
    case CUSOLVER_STATUS_INVALID_VALUE:
      return "CUSOLVER_STATUS_INVALID_VALUE";
    case CUSOLVER_STATUS_ARCH_MISMATCH:
      return "CUSOLVER_STATUS_ARCH_MISMATCH";
    case CUSOLVER_STATUS_MAPPING_ERROR:
      return "CUSOLVER_STATUS_MAPPING_ERROR";
    case CUSOLVER_STATUS_EXECUTION_FAILED:
      return "CUSOLVER_STATUS_EXECUTION_FAILED";
    case CUSOLVER_STATUS_INTERNAL_ERROR:
      return "CUSOLVER_STATUS_INTERNAL_ERROR";
    case CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED:
      return "CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED";
    case CUSOLVER_STATUS_NOT_SUPPORTED:
      return "CUSOLVER_STATUS_NOT_SUPPORTED";
    default:
      return "";
  }
}

void require(cusolverStatus_t status, const char* call) {
  if (status == CUSOLVER_STATUS_SUCCESS) return;
  throw LibraryError("cuSOLVER", call, int(status), nameOf(status), "");
}

// Destroyed with its pool: its memory is the device's, and it needs only a live driver.
struct Cusolver {
  using Handle = cusolverDnHandle_t;
  static constexpr const char* kName = "cuSOLVER";

  static Handle create(int device) {
    const handles::CreationScope scope(cuda::runtime(), device);
    Handle handle = nullptr;
    const auto create = [&] { return cusolverDnCreate(&handle); };
    require(handles::callWithRoom(device, CUSOLVER_STATUS_SUCCESS, create), "cusolverDnCreate");
    return handle;
  }
  static void destroy(Handle handle) noexcept { (void)cusolverDnDestroy(handle); }
  static void setStream(Handle handle, Stream stream) {
    require(cusolverDnSetStream(handle, reinterpret_cast<cudaStream_t>(stream.raw)),
            "cusolverDnSetStream");
  }
  static Stream streamOf(Handle handle) {
    cudaStream_t stream = nullptr;
    require(cusolverDnGetStream(handle, &stream), "cusolverDnGetStream");
    return Stream{reinterpret_cast<std::uintptr_t>(stream)};
  }
};

}  // namespace

cusolverDnHandle_t getCurrentCUDASolverDnHandle() { return handles::currentHandle<Cusolver>(); }

}  // namespace cistern
