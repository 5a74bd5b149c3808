#include "cistern/handles/cudss.hpp"

#include <cstdint>

#include <cudss.h>

#include "handles/library_memory.hpp"
#include "handles/vendor/vendor_library.hpp"

namespace cistern {
namespace {

// The library has no text for its statuses.
const char* nameOf(cudssStatus_t status) {
  switch (status) {
    CISTERN_STATUS_NAME(CUDSS_STATUS_SUCCESS);
    CISTERN_STATUS_NAME(CUDSS_STATUS_NOT_INITIALIZED);
    CISTERN_STATUS_NAME(CUDSS_STATUS_ALLOC_FAILED);
    CISTERN_STATUS_NAME(CUDSS_STATUS_INVALID_VALUE);
    CISTERN_STATUS_NAME(CUDSS_STATUS_NOT_SUPPORTED);
    CISTERN_STATUS_NAME(CUDSS_STATUS_EXECUTION_FAILED);
    CISTERN_STATUS_NAME(CUDSS_STATUS_INTERNAL_ERROR);
    default:
      return "";
  }
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

// Destroyed with its pool: its memory is the device's, and it needs only a live driver. It cannot
// say which stream a handle has, so that is set each time.
struct CudssCalls {
  using Handle = cudssHandle_t;
  static constexpr const char* kName = "cuDSS";
  static constexpr auto kRuntime = &cuda::runtime;
  static constexpr auto kSuccess = CUDSS_STATUS_SUCCESS;
  static constexpr auto kNameOf = &nameOf;
  static constexpr auto kCreate = CISTERN_CALL(cudssCreate);
  static constexpr auto kDestroy = CISTERN_CALL(cudssDestroy);
  static constexpr auto kSetStream = CISTERN_CALL(cudssSetStream);
};

struct Cudss : handles::VendorLibrary<CudssCalls> {
  static Handle create(int device) {
    const handles::CreationScope scope(cuda::runtime(), device);
    const Handle handle = VendorLibrary::create(device);
    try {
      setMemory(handle, device);
    } catch (...) {
      destroy(handle);
      throw;
    }
    return handle;
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
