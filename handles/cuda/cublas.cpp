#include "cistern/handles/cublas.hpp"

#include <cublas_v2.h>

#include "handles/vendor/vendor_library.hpp"
#include "handles/workspace_size.hpp"

namespace cistern {
namespace {

// Never destroyed: that frees device memory, which waits for the device and needs its context.
// Setting the stream also gives the handle its default workspace back.
struct CublasCalls {
  using Handle = cublasHandle_t;
  static constexpr const char* kName = "cuBLAS";
  static constexpr auto kRuntime = &cuda::runtime;
  static constexpr auto kSuccess = CUBLAS_STATUS_SUCCESS;
  static constexpr auto kNameOf = &cublasGetStatusName;
  static constexpr auto kTextOf = &cublasGetStatusString;
  static constexpr auto kCreate = CISTERN_CALL(cublasCreate);
  static constexpr auto kSetStream = CISTERN_CALL(cublasSetStream);
  static constexpr auto kGetStream = CISTERN_CALL(cublasGetStream);
};

struct Cublas : handles::VendorLibrary<CublasCalls> {
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
