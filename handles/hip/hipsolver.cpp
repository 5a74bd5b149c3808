#include <hipsolver/hipsolver.h>

#include "cistern/handles/hip.hpp"
#include "handles/vendor/vendor_library.hpp"

namespace cistern {
namespace {

// The library has no text for its statuses.
const char* nameOf(hipsolverStatus_t status) {
  switch (status) {
    CISTERN_STATUS_NAME(HIPSOLVER_STATUS_SUCCESS);
    CISTERN_STATUS_NAME(HIPSOLVER_STATUS_NOT_INITIALIZED);
    CISTERN_STATUS_NAME(HIPSOLVER_STATUS_ALLOC_FAILED);
    CISTERN_STATUS_NAME(HIPSOLVER_STATUS_INVALID_VALUE);
    CISTERN_STATUS_NAME(HIPSOLVER_STATUS_MAPPING_ERROR);
    CISTERN_STATUS_NAME(HIPSOLVER_STATUS_EXECUTION_FAILED);
    CISTERN_STATUS_NAME(HIPSOLVER_STATUS_INTERNAL_ERROR);
    CISTERN_STATUS_NAME(HIPSOLVER_STATUS_NOT_SUPPORTED);
    CISTERN_STATUS_NAME(HIPSOLVER_STATUS_ARCH_MISMATCH);
    CISTERN_STATUS_NAME(HIPSOLVER_STATUS_INVALID_ENUM);
    default:
      return "";
  }
}

// Destroyed with its pool, as cuSOLVER's are.
struct Hipsolver {
  using Handle = hipsolverHandle_t;
  static constexpr const char* kName = "hipSOLVER";
  static constexpr auto kRuntime = &hip::runtime;
  static constexpr auto kSuccess = HIPSOLVER_STATUS_SUCCESS;
  static constexpr auto kNameOf = &nameOf;
  static constexpr auto kCreate = CISTERN_CALL(hipsolverCreate);
  static constexpr auto kDestroy = CISTERN_CALL(hipsolverDestroy);
  static constexpr auto kSetStream = CISTERN_CALL(hipsolverSetStream);
  static constexpr auto kGetStream = CISTERN_CALL(hipsolverGetStream);
};

}  // namespace

hipsolverHandle_t getCurrentHipsolverHandle() { return handles::vendorHandle<Hipsolver>(); }

}  // namespace cistern
