// cuDSS: the handle of this thread for its current device, on its current stream, with its memory
// from the device's allocator (setWorkspaceAllocator).
#pragma once

#include <cudss.h>

namespace cistern {

/// Ask before each use; the handle is the thread's until it ends. Throws LibraryError. What a
/// cudssData_t holds is the allocator's memory: it is destroyed before that goes.
cudssHandle_t getCurrentCudssHandle();

}  // namespace cistern
