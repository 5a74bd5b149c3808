// cuBLAS: the handle of this thread for its current device, on its current stream and with a
// workspace from the device's allocator (setWorkspaceAllocator).
#pragma once

#include <cublas_v2.h>

namespace cistern {

/// Ask before each use; the handle is the thread's until it ends. Throws LibraryError; OutOfMemory
/// for the workspace; OptionError for a malformed CUBLAS_WORKSPACE_CONFIG.
cublasHandle_t getCurrentCUDABlasHandle();

}  // namespace cistern
