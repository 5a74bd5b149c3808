#include <cublasLt.h>

#include "cistern/handles/cublas.hpp"
#include "handles/vendor/vendor_library.hpp"
#include "handles/workspace_size.hpp"

namespace cistern {
namespace {

// Never destroyed, as cuBLAS's are.
struct CublasLt {
  using Handle = cublasLtHandle_t;
  static constexpr const char* kName = "cuBLASLt";
  static constexpr auto kRuntime = &cuda::runtime;
  static constexpr auto kSuccess = CUBLAS_STATUS_SUCCESS;
  static constexpr auto kNameOf = &cublasLtGetStatusName;
  static constexpr auto kTextOf = &cublasLtGetStatusString;
  static constexpr auto kCreate = CISTERN_CALL(cublasLtCreate);
};

std::size_t workspaceBytes(int device) {
  return handles::cublasLtWorkspaceBytes(cuda::runtime().computeMajor(device));
}

}  // namespace

cublasLtHandle_t getCurrentCUDABlasLtHandle() { return handles::vendorHandle<CublasLt>(); }

handles::Workspace getCurrentCUDABlasLtWorkspace() {
  return handles::currentWorkspace<handles::VendorLibrary<CublasLt>>(&workspaceBytes);
}

}  // namespace cistern
