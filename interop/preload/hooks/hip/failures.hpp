// The result of hipGetLastError. HIP's runtime keeps the last failure of a thread. It does not know
// of a failed call that Cistern has served.
#pragma once

#include "interop/preload/driver/vendor_names.hpp"

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
