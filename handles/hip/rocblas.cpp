#include <rocblas/rocblas.h>

#include "cistern/handles/hip.hpp"
#include "cistern/handles/library.hpp"
#include "handles/current_handle.hpp"
#include "handles/vendor/runtime.hpp"

namespace cistern {
namespace {

void require(rocblas_status status, const char* call) {
  if (status == rocblas_status_success) return;
  throw LibraryError("rocBLAS", call, int(status), rocblas_status_to_string(status), "");
}

// Never destroyed: it waits for its stream, which the program may have destroyed before.
struct Rocblas {
  using Handle = rocblas_handle;
  static constexpr const char* kName = "rocBLAS";

  static Handle create(int device) {
    const handles::CreationScope scope(hip::runtime(), device);
    Handle handle = nullptr;
    const auto create = [&] { return rocblas_create_handle(&handle); };
    require(handles::callWithRoom(device, rocblas_status_success, create), "rocblas_create_handle");
    return handle;
  }
  static void setStream(Handle handle, Stream stream) {
    require(rocblas_set_stream(handle, reinterpret_cast<hipStream_t>(stream.raw)),
            "rocblas_set_stream");
  }
  static Stream streamOf(Handle handle) {
    hipStream_t stream = nullptr;
    require(rocblas_get_stream(handle, &stream), "rocblas_get_stream");
    return Stream{reinterpret_cast<std::uintptr_t>(stream)};
  }
};

}  // namespace

rocblas_handle getCurrentRocblasHandle() { return handles::currentHandle<Rocblas>(); }

}  // namespace cistern
