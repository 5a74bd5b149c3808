#include "cistern/handles/cudnn.hpp"

#include <string>

#include <cudnn.h>

#include "handles/vendor/vendor_library.hpp"

namespace cistern {
namespace {

/// The error of this thread's last call, in words; the status alone says less.
std::string lastError(cudnnStatus_t) {
  std::string text(512, '\0');
  cudnnGetLastErrorString(text.data(), text.size());
  text.resize(text.find('\0'));
  return text;
}

// Never destroyed: it unloads kernels, and at exit the driver that holds them may be gone.
struct Cudnn {
  using Handle = cudnnHandle_t;
  static constexpr const char* kName = "cuDNN";
  static constexpr auto kRuntime = &cuda::runtime;
  static constexpr auto kSuccess = CUDNN_STATUS_SUCCESS;
  static constexpr auto kNameOf = &cudnnGetErrorString;
  static constexpr auto kTextOf = &lastError;
  static constexpr auto kCreate = CISTERN_CALL(cudnnCreate);
  static constexpr auto kSetStream = CISTERN_CALL(cudnnSetStream);
  static constexpr auto kGetStream = CISTERN_CALL(cudnnGetStream);
};

}  // namespace

cudnnHandle_t getCudnnHandle() { return handles::vendorHandle<Cudnn>(); }

}  // namespace cistern
