// What hipGetLastError says. HIP's runtime keeps the last failure of a thread; a failure of a call
// that Cistern has served, the runtime knows nothing of.
#pragma once

#include "interop/preload/driver/vendor.hpp"

namespace cistern::preload::hip {

/// Keeps it, if it is a failure, for the program to find; and returns it.
hipError_t told(hipError_t result) noexcept;

}  // namespace cistern::preload::hip
