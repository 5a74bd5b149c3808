// cuSPARSE: the handle of this thread for its current device, on its current stream. Link
// cistern::handles_cusparse.
#pragma once

#include "cistern/handles/library.hpp"

struct cusparseContext;  // a cusparseHandle_t points to it

namespace cistern {

/// Call it before each use; the handle is the thread's until it ends. Throws LibraryError.
CISTERN_API ::cusparseContext* getCurrentCUDASparseHandle();

}  // namespace cistern
