#include <hipblas/hipblas.h>

#include "cistern/handles/hip.hpp"
#include "cistern/handles/library.hpp"
#include "handles/current_handle.hpp"
#include "handles/vendor/runtime.hpp"

namespace cistern {
namespace {

void require(hipblasStatus_t status, const char* call) {
  if (status == HIPBLAS_STATUS_SUCCESS) return;
  throw LibraryError("hipBLAS", call, int(status), hipblasStatusToString(status), "");
}

// Never destroyed: it is rocBLAS's handle underneath.
struct Hipblas {
  using Handle = hipblasHandle_t;
  static constexpr const char* kName = "hipBLAS";

  static Handle create(int device) {
    const handles::CreationScope scope(hip::runtime(), device);
    Handle handle = nullptr;
    const auto create = [&] { return hipblasCreate(&handle); };
    require(handles::callWithRoom(device, HIPBLAS_STATUS_SUCCESS, create), "hipblasCreate");
    return handle;
  }
  static void setStream(Handle handle, Stream stream) {
    require(hipblasSetStream(handle, reinterpret_cast<hipStream_t>(stream.raw)),
            "hipblasSetStream");
  }
  static Stream streamOf(Handle handle) {
    hipStream_t stream = nullptr;
    require(hipblasGetStream(handle, &stream), "hipblasGetStream");
    return Stream{reinterpret_cast<std::uintptr_t>(stream)};
  }
};

}  // namespace

hipblasHandle_t getCurrentHipblasHandle() { return handles::currentHandle<Hipblas>(); }

}  // namespace cistern
