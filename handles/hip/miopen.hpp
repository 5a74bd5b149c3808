// MIOpen: the handle of this thread for its current device, on its current stream.
#pragma once

#include <miopen/miopen.h>

namespace cistern {

/// Ask before each use; the handle is the thread's until it ends. Throws LibraryError.
miopenHandle_t getMiopenHandle();

}  // namespace cistern
