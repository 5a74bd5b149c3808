#include "cistern/handles/cusparse.hpp"

#include <cusparse.h>

#include "cistern/handles/library.hpp"
#include "handles/current_handle.hpp"
#include "handles/vendor/runtime.hpp"

namespace cistern {
namespace {

void require(cusparseStatus_t status, const char* call) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  throw LibraryError("cuSPARSE", call, int(status), cusparseGetErrorName(status),
                     cusparseGetErrorString(status));
}

// Destroyed with its pool: its memory is the device's, and it needs only a live driver.
struct Cusparse {
  using Handle = cusparseHandle_t;
  static constexpr const char* kName = "cuSPARSE";

  static Handle create(int device) {
    const handles::CreationScope scope(cuda::runtime(), device);
    Handle handle = nullptr;
    const auto create = [&] { return cusparseCreate(&handle); };
    require(handles::callWithRoom(device, CUSPARSE_STATUS_SUCCESS, create), "cusparseCreate");
    return handle;
  }
  static void destroy(Handle handle) noexcept { (void)cusparseDestroy(handle); }
  static void setStream(Handle handle, Stream stream) {
    require(cusparseSetStream(handle, reinterpret_cast<cudaStream_t>(stream.raw)),
            "cusparseSetStream");
  }
  static Stream streamOf(Handle handle) {
    cudaStream_t stream = nullptr;
    require(cusparseGetStream(handle, &stream), "cusparseGetStream");
    return Stream{reinterpret_cast<std::uintptr_t>(stream)};
  }
};

}  // namespace

cusparseHandle_t getCurrentCUDASparseHandle() { return handles::currentHandle<Cusparse>(); }

}  // namespace cistern
