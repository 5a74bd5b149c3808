#include <hipsolver/hipsolver.h>

#include "cistern/handles/hip.hpp"
#include "cistern/handles/library.hpp"
#include "handles/current_handle.hpp"
#include "handles/vendor/runtime.hpp"

namespace cistern {
namespace {

// The library has no text for its statuses.
const char* nameOf(hipsolverStatus_t status) {
  switch (status) {
    case HIPSOLVER_STATUS_SUCCESS:
      return "HIPSOLVER_STATUS_SUCCESS";
    case HIPSOLVER_STATUS_NOT_INITIALIZED:
      return "HIPSOLVER_STATUS_NOT_INITIALIZED";
    case HIPSOLVER_STATUS_ALLOC_FAILED:
      return "HIPSOLVER_STATUS_ALLOC_FAILED";
    case HIPSOLVER_STATUS_INVALID_VALUE:
      return "HIPSOLVER_STATUS_INVALID_VALUE";
    case HIPSOLVER_STATUS_MAPPING_ERROR:
      return "HIPSOLVER_STATUS_MAPPING_ERROR";
    case HIPSOLVER_STATUS_EXECUTION_FAILED:
      return "HIPSOLVER_STATUS_EXECUTION_FAILED";
    case HIPSOLVER_STATUS_INTERNAL_ERROR:
      return "HIPSOLVER_STATUS_INTERNAL_ERROR";
    case HIPSOLVER_STATUS_NOT_SUPPORTED:
      return "HIPSOLVER_STATUS_NOT_SUPPORTED";
    case HIPSOLVER_STATUS_ARCH_MISMATCH:
      return "HIPSOLVER_STATUS_ARCH_MISMATCH";
    case HIPSOLVER_STATUS_INVALID_ENUM:
      return "HIPSOLVER_STATUS_INVALID_ENUM";
    default:
      return "";
  }
}

void require(hipsolverStatus_t status, const char* call) {
  if (status == HIPSOLVER_STATUS_SUCCESS) return;
  throw LibraryError("hipSOLVER", call, int(status), nameOf(status), "");
}

// Destroyed with its pool, as cuSOLVER's are.
struct Hipsolver {
  using Handle = hipsolverHandle_t;
  static constexpr const char* kName = "hipSOLVER";

  static Handle create(int device) {
    const handles::CreationScope scope(hip::runtime(), device);
    Handle handle = nullptr;
    const auto create = [&] { return hipsolverCreate(&handle); };
    require(handles::callWithRoom(device, HIPSOLVER_STATUS_SUCCESS, create), "hipsolverCreate");
    return handle;
  }
  static void destroy(Handle handle) noexcept { (void)hipsolverDestroy(handle); }
  static void setStream(Handle handle, Stream stream) {
    require(hipsolverSetStream(handle, reinterpret_cast<hipStream_t>(stream.raw)),
            "hipsolverSetStream");
  }
  static Stream streamOf(Handle handle) {
    hipStream_t stream = nullptr;
    require(hipsolverGetStream(handle, &stream), "hipsolverGetStream");
    return Stream{reinterpret_cast<std::uintptr_t>(stream)};
  }
};

}  // namespace

hipsolverHandle_t getCurrentHipsolverHandle() { return handles::currentHandle<Hipsolver>(); }

}  // namespace cistern
