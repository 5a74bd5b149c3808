#include "cistern/handles/cudnn.hpp"

#include <cudnn.h>

#include "cistern/handles/library.hpp"
#include "handles/current_handle.hpp"
#include "handles/vendor/runtime.hpp"

namespace cistern {
namespace {

/// The error of this thread's last call, in words.
std::string lastError() {
  std::string text(512, '\0');
  cudnnGetLastErrorString(text.data(), text.size());
  text.resize(text.find('\0'));
  return text;
}

void require(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  throw LibraryError("cuDNN", call, int(status), cudnnGetErrorString(status), lastError());
}

// Never destroyed: it unloads kernels, and at exit the driver that holds them may be gone.
struct Cudnn {
  using Handle = cudnnHandle_t;
  static constexpr const char* kName = "cuDNN";

  static Handle create(int device) {
    const handles::CreationScope scope(cuda::runtime(), device);
    Handle handle = nullptr;
    const auto create = [&] { return cudnnCreate(&handle); };
    require(handles::callWithRoom(device, CUDNN_STATUS_SUCCESS, create), "cudnnCreate");
    return handle;
  }
  static void setStream(Handle handle, Stream stream) {
    require(cudnnSetStream(handle, reinterpret_cast<cudaStream_t>(stream.raw)), "cudnnSetStream");
  }
  static Stream streamOf(Handle handle) {
    cudaStream_t stream = nullptr;
    require(cudnnGetStream(handle, &stream), "cudnnGetStream");
    return Stream{reinterpret_cast<std::uintptr_t>(stream)};
  }
};

}  // namespace

cudnnHandle_t getCudnnHandle() { return handles::currentHandle<Cudnn>(); }

}  // namespace cistern
