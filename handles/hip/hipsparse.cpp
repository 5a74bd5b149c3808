#include <hipsparse/hipsparse.h>

#include "cistern/handles/hip.hpp"
#include "handles/vendor/vendor_library.hpp"

namespace cistern {
namespace {

// The library has no text for its statuses.
const char* nameOf(hipsparseStatus_t status) {
  switch (status) {
    CISTERN_STATUS_NAME(HIPSPARSE_STATUS_SUCCESS);
    CISTERN_STATUS_NAME(HIPSPARSE_STATUS_NOT_INITIALIZED);
    CISTERN_STATUS_NAME(HIPSPARSE_STATUS_ALLOC_FAILED);
    CISTERN_STATUS_NAME(HIPSPARSE_STATUS_INVALID_VALUE);
    CISTERN_STATUS_NAME(HIPSPARSE_STATUS_ARCH_MISMATCH);
    CISTERN_STATUS_NAME(HIPSPARSE_STATUS_MAPPING_ERROR);
    CISTERN_STATUS_NAME(HIPSPARSE_STATUS_EXECUTION_FAILED);
    CISTERN_STATUS_NAME(HIPSPARSE_STATUS_INTERNAL_ERROR);
    CISTERN_STATUS_NAME(HIPSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED);
    CISTERN_STATUS_NAME(HIPSPARSE_STATUS_ZERO_PIVOT);
    default:
      return "";
  }
}

// Destroyed with its pool, as cuSPARSE's are.
struct Hipsparse {
  using Handle = hipsparseHandle_t;
  static constexpr const char* kName = "hipSPARSE";
  static constexpr auto kRuntime = &hip::runtime;
  static constexpr auto kSuccess = HIPSPARSE_STATUS_SUCCESS;
  static constexpr auto kNameOf = &nameOf;
  static constexpr auto kCreate = CISTERN_CALL(hipsparseCreate);
  static constexpr auto kDestroy = CISTERN_CALL(hipsparseDestroy);
  static constexpr auto kSetStream = CISTERN_CALL(hipsparseSetStream);
  static constexpr auto kGetStream = CISTERN_CALL(hipsparseGetStream);
};

}  // namespace

hipsparseHandle_t getCurrentHipsparseHandle() { return handles::vendorHandle<Hipsparse>(); }

}  // namespace cistern
