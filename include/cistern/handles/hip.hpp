// ROCm's libraries: the handle of this thread for its current device, on its current stream. Link
// cistern::handles_<library> of each that you use.
#pragma once

#include "cistern/handles/library.hpp"

struct _rocblas_handle;  // a rocblas_handle points to it
struct miopenHandle;     // a miopenHandle_t points to it

namespace cistern {

/// Call each before each use; the handle is the thread's until it ends. They throw LibraryError.
/// The result is a void pointer if the library's own handle is one.
CISTERN_API ::_rocblas_handle* getCurrentRocblasHandle();
CISTERN_API void* getCurrentHipblasHandle();
CISTERN_API void* getCurrentHipsolverHandle();
CISTERN_API void* getCurrentHipsparseHandle();
CISTERN_API ::miopenHandle* getMiopenHandle();

}  // namespace cistern
