// The result of hipGetLastError. HIP's runtime keeps the last failure of a thread; a failure of a
// call that Cistern has served, the runtime knows nothing of.
#pragma once

#include "interop/preload/driver/vendor.hpp"

namespace cistern::preload::hip {

namespace detail {
inline constinit thread_local hipError_t last_failure = hipSuccess;
}  // namespace detail

/// Keeps it, if it is a failure, for the program to find; and returns it.
inline hipError_t told(hipError_t result) noexcept {
  if (result != hipSuccess) [[unlikely]]
    detail::last_failure = result;
  return result;
}

}  // namespace cistern::preload::hip
