// cuBLAS: the handle of this thread for its current device, on its current stream. Its workspace is
// from the device's allocator (setWorkspaceAllocator). cuBLASLt: the same without a stream. Each of
// its calls takes a stream and a workspace: pass cistern::currentStream() and the workspace from
// here. Link cistern::handles_cublas, cistern::handles_cublas_lt.
#pragma once

#include "cistern/handles/library.hpp"

struct cublasContext;    // a cublasHandle_t points to it
struct cublasLtContext;  // a cublasLtHandle_t points to it

namespace cistern {

/// Call it before each use; the handle is the thread's until it ends. Throws LibraryError;
/// OutOfMemory for the workspace; OptionError for a malformed CUBLAS_WORKSPACE_CONFIG.
CISTERN_API ::cublasContext* getCurrentCUDABlasHandle();

/// The handle is the thread's until it ends. Throws LibraryError.
CISTERN_API ::cublasLtContext* getCurrentCUDABlasLtHandle();

/// Memory for the calls that this thread queues on its current stream; get it before each. Empty
/// without an allocator (setWorkspaceAllocator). Throws OutOfMemory, and OptionError for a
/// malformed CUBLASLT_WORKSPACE_SIZE.
CISTERN_API handles::Workspace getCurrentCUDABlasLtWorkspace();

}  // namespace cistern
