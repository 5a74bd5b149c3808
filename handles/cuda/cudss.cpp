#include "cistern/handles/cudss.hpp"

#include <cstdint>

#include <cudss.h>

#include "cistern/handles/library.hpp"
#include "handles/current_handle.hpp"
#include "handles/library_memory.hpp"
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

// cuDSS takes its memory piece by piece: factors, which a cudssData_t holds, and a phase's
// workspace. `context` is the device's number plus one, so that it is never null.
int deviceOf(void* context) { return int(reinterpret_cast<std::intptr_t>(context)) - 1; }
Stream asStream(cudaStream_t stream) { return Stream{reinterpret_cast<std::uintptr_t>(stream)}; }

// Clears the error of a failed call, which the program's next check would find.
int cleared(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return int(error);
}

int takeMemory(void* context, void** memory, std::size_t bytes, cudaStream_t stream) noexcept try {
  handles::LibraryMemory& pieces = handles::libraryMemory();
  *memory = pieces.allocate(deviceOf(context), bytes, asStream(stream));
  if (*memory != nullptr || bytes == 0) return 0;
  const int error = cleared(cudaMallocAsync(memory, bytes, stream));
  if (error == 0) pieces.noteElsewhere(*memory);
  return error;
} catch (...) {
  return int(cudaErrorMemoryAllocation);
}

int giveMemoryBack(void* /*context*/, void* memory, std::size_t, cudaStream_t stream) noexcept {
  if (memory == nullptr || handles::libraryMemory().free(memory, asStream(stream))) return 0;
  return cleared(cudaFreeAsync(memory, stream));
}

// Destroyed with its pool: its memory is the device's, and it needs only a live driver.
struct Cudss {
  using Handle = cudssHandle_t;
  static constexpr const char* kName = "cuDSS";

  static Handle create(int device) {
    const handles::CreationScope scope(cuda::runtime(), device);
    Handle handle = nullptr;
    const auto create = [&] { return cudssCreate(&handle); };
    require(handles::callWithRoom(device, CUDSS_STATUS_SUCCESS, create), "cudssCreate");
    try {
      setMemory(handle, device);
    } catch (...) {
      destroy(handle);
      throw;
    }
    return handle;
  }
  static void destroy(Handle handle) noexcept { (void)cudssDestroy(handle); }
  // It cannot say which stream a handle has, so that is set each time.
  static void setStream(Handle handle, Stream stream) {
    require(cudssSetStream(handle, reinterpret_cast<cudaStream_t>(stream.raw)), "cudssSetStream");
  }

 private:
  // The library copies it.
  static void setMemory(Handle handle, int device) {
    const cudssDeviceMemHandler_t memory{reinterpret_cast<void*>(std::intptr_t(device) + 1),
                                         takeMemory, giveMemoryBack, "Cistern"};
    require(cudssSetDeviceMemHandler(handle, &memory), "cudssSetDeviceMemHandler");
  }
};

}  // namespace

cudssHandle_t getCurrentCudssHandle() { return handles::currentHandle<Cudss>(); }

}  // namespace cistern
