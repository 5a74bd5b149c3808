#include "cistern/handles/cusolver.hpp"

#include <cusolverDn.h>

#include "handles/vendor/vendor_library.hpp"

namespace cistern {
namespace {

// The library has no text for its statuses.
const char* nameOf(cusolverStatus_t status) {
  switch (status) {
    CISTERN_STATUS_NAME(CUSOLVER_STATUS_SUCCESS);
    CISTERN_STATUS_NAME(CUSOLVER_STATUS_NOT_INITIALIZED);
    CISTERN_STATUS_NAME(CUSOLVER_STATUS_ALLOC_FAILED);
    CISTERN_STATUS_NAME(CUSOLVER_STATUS_INVALID_VALUE);
    CISTERN_STATUS_NAME(CUSOLVER_STATUS_ARCH_MISMATCH);
    CISTERN_STATUS_NAME(CUSOLVER_STATUS_MAPPING_ERROR);
    CISTERN_STATUS_NAME(CUSOLVER_STATUS_EXECUTION_FAILED);
    CISTERN_STATUS_NAME(CUSOLVER_STATUS_INTERNAL_ERROR);
    CISTERN_STATUS_NAME(CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED);
    CISTERN_STATUS_NAME(CUSOLVER_STATUS_NOT_SUPPORTED);
    default:
      return "";
  }
}

// Destroyed with its pool: its memory is the device's, and it needs only a live driver.
struct Cusolver {
  using Handle = cusolverDnHandle_t;
  static constexpr const char* kName = "cuSOLVER";
  static constexpr auto kRuntime = &cuda::runtime;
  static constexpr auto kSuccess = CUSOLVER_STATUS_SUCCESS;
  static constexpr auto kNameOf = &nameOf;
  static constexpr auto kCreate = CISTERN_CALL(cusolverDnCreate);
  static constexpr auto kDestroy = CISTERN_CALL(cusolverDnDestroy);
  static constexpr auto kSetStream = CISTERN_CALL(cusolverDnSetStream);
  static constexpr auto kGetStream = CISTERN_CALL(cusolverDnGetStream);
};

}  // namespace

cusolverDnHandle_t getCurrentCUDASolverDnHandle() { return handles::vendorHandle<Cusolver>(); }

}  // namespace cistern
