// rocBLAS: the handle of this thread for its current device, on its current stream.
#pragma once

#include <rocblas/rocblas.h>

namespace cistern {

/// Ask before each use; the handle is the thread's until it ends. Throws LibraryError.
rocblas_handle getCurrentRocblasHandle();

}  // namespace cistern
