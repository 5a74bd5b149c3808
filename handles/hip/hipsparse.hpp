// hipSPARSE: the handle of this thread for its current device, on its current stream.
#pragma once

#include <hipsparse/hipsparse.h>

namespace cistern {

/// Ask before each use; the handle is the thread's until it ends. Throws LibraryError.
hipsparseHandle_t getCurrentHipsparseHandle();

}  // namespace cistern
