#include <cublasLt.h>

#include "cistern/handles/cublas.hpp"
#include "cistern/handles/library.hpp"
#include "handles/current_handle.hpp"
#include "handles/vendor/runtime.hpp"
#include "handles/workspace_size.hpp"

namespace cistern {
namespace {

void require(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw LibraryError("cuBLASLt", call, int(status), cublasLtGetStatusName(status),
                     cublasLtGetStatusString(status));
}

// Never destroyed, as cuBLAS's are.
struct CublasLt {
  using Handle = cublasLtHandle_t;
  static constexpr const char* kName = "cuBLASLt";

  static Handle create(int device) {
    const handles::CreationScope scope(cuda::runtime(), device);
    Handle handle = nullptr;
    const auto create = [&] { return cublasLtCreate(&handle); };
    require(handles::callWithRoom(device, CUBLAS_STATUS_SUCCESS, create), "cublasLtCreate");
    return handle;
  }
};

std::size_t workspaceBytes(int device) {
  return handles::cublasLtWorkspaceBytes(cuda::runtime().computeMajor(device));
}

}  // namespace

cublasLtHandle_t getCurrentCUDABlasLtHandle() { return handles::currentHandle<CublasLt>(); }

handles::Workspace getCurrentCUDABlasLtWorkspace() {
  return handles::currentWorkspace<CublasLt>(&workspaceBytes);
}

}  // namespace cistern
