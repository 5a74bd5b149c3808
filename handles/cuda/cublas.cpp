#include "cistern/handles/cublas.hpp"

#include <cublas_v2.h>

#include "cistern/handles/library.hpp"
#include "handles/current_handle.hpp"
#include "handles/vendor/runtime.hpp"
#include "handles/workspace_size.hpp"

namespace cistern {
namespace {

void require(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw LibraryError("cuBLAS", call, int(status), cublasGetStatusName(status),
                     cublasGetStatusString(status));
}

// Never destroyed: that frees device memory, which waits for the device and needs its context.
struct Cublas {
  using Handle = cublasHandle_t;
  static constexpr const char* kName = "cuBLAS";

  static Handle create(int device) {
    const handles::CreationScope scope(cuda::runtime(), device);
    Handle handle = nullptr;
    const auto create = [&] { return cublasCreate(&handle); };
    require(handles::callWithRoom(device, CUBLAS_STATUS_SUCCESS, create), "cublasCreate");
    return handle;
  }
  /// Also gives the handle its default workspace back.
  static void setStream(Handle handle, Stream stream) {
    require(cublasSetStream(handle, reinterpret_cast<cudaStream_t>(stream.raw)), "cublasSetStream");
  }
  static Stream streamOf(Handle handle) {
    cudaStream_t stream = nullptr;
    require(cublasGetStream(handle, &stream), "cublasGetStream");
    return Stream{reinterpret_cast<std::uintptr_t>(stream)};
  }
  static std::size_t workspaceBytes(int device) {
    return handles::cublasWorkspaceBytes(cuda::runtime().computeMajor(device));
  }
  static void setWorkspace(Handle handle, void* memory, std::size_t bytes) {
    require(cublasSetWorkspace(handle, memory, bytes), "cublasSetWorkspace");
  }
};

}  // namespace

cublasHandle_t getCurrentCUDABlasHandle() { return handles::currentHandle<Cublas>(); }

}  // namespace cistern
