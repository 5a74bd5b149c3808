#include <rocblas/rocblas.h>

#include "cistern/handles/hip.hpp"
#include "handles/vendor/vendor_library.hpp"

namespace cistern {
namespace {

// Never destroyed: it waits for its stream, which the program may have destroyed before.
struct Rocblas {
  using Handle = rocblas_handle;
  static constexpr const char* kName = "rocBLAS";
  static constexpr auto kRuntime = &hip::runtime;
  static constexpr auto kSuccess = rocblas_status_success;
  static constexpr auto kNameOf = &rocblas_status_to_string;
  static constexpr auto kCreate = CISTERN_CALL(rocblas_create_handle);
  static constexpr auto kSetStream = CISTERN_CALL(rocblas_set_stream);
  static constexpr auto kGetStream = CISTERN_CALL(rocblas_get_stream);
};

}  // namespace

rocblas_handle getCurrentRocblasHandle() { return handles::vendorHandle<Rocblas>(); }

}  // namespace cistern
