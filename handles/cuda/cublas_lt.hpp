// cuBLASLt: the handle of this thread for its current device. Its calls are given stream and
// workspace one by one: pass them cistern::currentStream() and the workspace from here.
#pragma once

#include <cublasLt.h>

#include "handles/workspaces.hpp"

namespace cistern {

/// The handle is the thread's until it ends. Throws LibraryError.
cublasLtHandle_t getCurrentCUDABlasLtHandle();

/// Memory for the calls that this thread queues on its current stream; ask before each. Empty
/// without an allocator (setWorkspaceAllocator). Throws OutOfMemory, and OptionError for a
/// malformed CUBLASLT_WORKSPACE_SIZE.
handles::Workspace getCurrentCUDABlasLtWorkspace();

}  // namespace cistern
