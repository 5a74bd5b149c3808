// hipBLAS: the handle of this thread for its current device, on its current stream.
#pragma once

#include <hipblas/hipblas.h>

namespace cistern {

/// Ask before each use; the handle is the thread's until it ends. Throws LibraryError.
hipblasHandle_t getCurrentHipblasHandle();

}  // namespace cistern
