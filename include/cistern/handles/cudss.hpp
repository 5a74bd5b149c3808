// cuDSS: the handle of this thread for its current device, on its current stream, with its memory
// from the device's allocator (setWorkspaceAllocator). Link cistern::handles_cudss.
#pragma once

#include "cistern/handles/library.hpp"

struct cudssContext;  // a cudssHandle_t points to it

namespace cistern {

/// Call it before each use; the handle is the thread's until it ends. Throws LibraryError. A
/// cudssData_t holds the allocator's memory: destroy it before the allocator.
CISTERN_API ::cudssContext* getCurrentCudssHandle();

}  // namespace cistern
