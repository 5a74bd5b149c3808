#include <hipsparse/hipsparse.h>

#include "cistern/handles/hip.hpp"
#include "cistern/handles/library.hpp"
#include "handles/current_handle.hpp"
#include "handles/vendor/runtime.hpp"

namespace cistern {
namespace {

// The library has no text for its statuses.
const char* nameOf(hipsparseStatus_t status) {
  switch (status) {
    case HIPSPARSE_STATUS_SUCCESS:
      return "HIPSPARSE_STATUS_SUCCESS";
    case HIPSPARSE_STATUS_NOT_INITIALIZED:
      return "HIPSPARSE_STATUS_NOT_INITIALIZED";
    case HIPSPARSE_STATUS_ALLOC_FAILED:
      return "HIPSPARSE_STATUS_ALLOC_FAILED";
    case HIPSPARSE_STATUS_INVALID_VALUE:
      return "HIPSPARSE_STATUS_INVALID_VALUE";
    case HIPSPARSE_STATUS_ARCH_MISMATCH:
      return "HIPSPARSE_STATUS_ARCH_MISMATCH";
    case HIPSPARSE_STATUS_MAPPING_ERROR:
      return "HIPSPARSE_STATUS_MAPPING_ERROR";
    case HIPSPARSE_STATUS_EXECUTION_FAILED:
      return "HIPSPARSE_STATUS_EXECUTION_FAILED";
    case HIPSPARSE_STATUS_INTERNAL_ERROR:
      return "HIPSPARSE_STATUS_INTERNAL_ERROR";
    case HIPSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED:
      return "HIPSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED";
    case HIPSPARSE_STATUS_ZERO_PIVOT:
      return "HIPSPARSE_STATUS_ZERO_PIVOT";
    default:
      return "";
  }
}

void require(hipsparseStatus_t status, const char* call) {
  if (status == HIPSPARSE_STATUS_SUCCESS) return;
  throw LibraryError("hipSPARSE", call, int(status), nameOf(status), "");
}

// Destroyed with its pool, as cuSPARSE's are.
struct Hipsparse {
  using Handle = hipsparseHandle_t;
  static constexpr const char* kName = "hipSPARSE";

  static Handle create(int device) {
    const handles::CreationScope scope(hip::runtime(), device);
    Handle handle = nullptr;
    const auto create = [&] { return hipsparseCreate(&handle); };
    require(handles::callWithRoom(device, HIPSPARSE_STATUS_SUCCESS, create), "hipsparseCreate");
    return handle;
  }
  static void destroy(Handle handle) noexcept { (void)hipsparseDestroy(handle); }
  static void setStream(Handle handle, Stream stream) {
    require(hipsparseSetStream(handle, reinterpret_cast<hipStream_t>(stream.raw)),
            "hipsparseSetStream");
  }
  static Stream streamOf(Handle handle) {
    hipStream_t stream = nullptr;
    require(hipsparseGetStream(handle, &stream), "hipsparseGetStream");
    return Stream{reinterpret_cast<std::uintptr_t>(stream)};
  }
};

}  // namespace

hipsparseHandle_t getCurrentHipsparseHandle() { return handles::currentHandle<Hipsparse>(); }

}  // namespace cistern
