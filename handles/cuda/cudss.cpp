#include "handles/cuda/cudss.hpp"

#include "handles/current_handle.hpp"
#include "handles/library_error.hpp"
#include "handles/vendor/runtime.hpp"

namespace cistern {
namespace {

// The library has no text for its statuses.
const char* nameOf(cudssStatus_t status) {
  switch (status) {
    case CUDSS_STATUS_SUCCESS:
      return "CUDSS_STATUS_SUCCESS";
    case CUDSS_STATUS_NOT_INITIALIZED:
      return "CUDSS_STATUS_NOT_INITIALIZED";
    case CUDSS_STATUS_ALLOC_FAILED:
      return "CUDSS_STATUS_ALLOC_FAILED";
    case CUDSS_STATUS_INVALID_VALUE:
      return "CUDSS_STATUS_INVALID_VALUE";
    case CUDSS_STATUS_NOT_SUPPORTED:
      return "CUDSS_STATUS_NOT_SUPPORTED";
    case CUDSS_STATUS_EXECUTION_FAILED:
      return "CUDSS_STATUS_EXECUTION_FAILED";
    case CUDSS_STATUS_INTERNAL_ERROR:
      return "CUDSS_STATUS_INTERNAL_ERROR";
    default:
      return "";
  }
}

void require(cudssStatus_t status, const char* call) {
  if (status == CUDSS_STATUS_SUCCESS) return;
  throw LibraryError("cuDSS", call, int(status), nameOf(status), "");
}

// Destroyed with its pool: its memory is the device's, and it wants nothing but a live driver.
struct Cudss {
  using Handle = cudssHandle_t;
  static constexpr const char* kName = "cuDSS";

  static Handle create(int device) {
    const handles::CreationScope scope(cuda::runtime(), device);
    Handle handle = nullptr;
    const auto create = [&] { return cudssCreate(&handle); };
    require(handles::callWithRoom(device, CUDSS_STATUS_SUCCESS, create), "cudssCreate");
    return handle;
  }
  static void destroy(Handle handle) noexcept { (void)cudssDestroy(handle); }
  // It cannot say which stream a handle has, so that is set each time.
  static void setStream(Handle handle, Stream stream) {
    require(cudssSetStream(handle, reinterpret_cast<cudaStream_t>(stream.raw)), "cudssSetStream");
  }
};

}  // namespace

cudssHandle_t getCurrentCudssHandle() { return handles::currentHandle<Cudss>(); }

}  // namespace cistern
