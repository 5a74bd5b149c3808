#include "cistern/handles/cusparse.hpp"

#include <cusparse.h>

#include "handles/vendor/vendor_library.hpp"

namespace cistern {
namespace {

// Destroyed with its pool: its memory is the device's, and it needs only a live driver.
struct Cusparse {
  using Handle = cusparseHandle_t;
  static constexpr const char* kName = "cuSPARSE";
  static constexpr auto kRuntime = &cuda::runtime;
  static constexpr auto kSuccess = CUSPARSE_STATUS_SUCCESS;
  static constexpr auto kNameOf = &cusparseGetErrorName;
  static constexpr auto kTextOf = &cusparseGetErrorString;
  static constexpr auto kCreate = CISTERN_CALL(cusparseCreate);
  static constexpr auto kDestroy = CISTERN_CALL(cusparseDestroy);
  static constexpr auto kSetStream = CISTERN_CALL(cusparseSetStream);
  static constexpr auto kGetStream = CISTERN_CALL(cusparseGetStream);
};

}  // namespace

cusparseHandle_t getCurrentCUDASparseHandle() { return handles::vendorHandle<Cusparse>(); }

}  // namespace cistern
