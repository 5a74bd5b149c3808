#include <hipblas/hipblas.h>

#include "cistern/handles/hip.hpp"
#include "handles/vendor/vendor_library.hpp"

namespace cistern {
namespace {

// Never destroyed: it is rocBLAS's handle underneath.
struct Hipblas {
  using Handle = hipblasHandle_t;
  static constexpr const char* kName = "hipBLAS";
  static constexpr auto kRuntime = &hip::runtime;
  static constexpr auto kSuccess = HIPBLAS_STATUS_SUCCESS;
  static constexpr auto kNameOf = &hipblasStatusToString;
  static constexpr auto kCreate = CISTERN_CALL(hipblasCreate);
  static constexpr auto kSetStream = CISTERN_CALL(hipblasSetStream);
  static constexpr auto kGetStream = CISTERN_CALL(hipblasGetStream);
};

}  // namespace

hipblasHandle_t getCurrentHipblasHandle() { return handles::vendorHandle<Hipblas>(); }

}  // namespace cistern
