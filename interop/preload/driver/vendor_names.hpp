// How one source serves two vendors: the only file of this folder with a vendor `#if`.
//
// The code here, in served and in hooks is compiled twice, once with CISTERN_VENDOR_CUDA and once
// with CISTERN_VENDOR_HIP. The two SDKs' headers cannot stand in one translation unit. The code
// says Code, StreamHandle, kSuccess, driver.recordEvent(…). Its namespace is cistern::preload::cuda
// or cistern::preload::hip, which the build names GPU_NAMESPACE. The files cuda/driver.hpp and
// hip/driver.hpp define these names in the same order, each for its vendor: read them side by side.
#pragma once

#if defined(CISTERN_VENDOR_CUDA)
#include "interop/preload/driver/cuda/driver.hpp"
#elif defined(CISTERN_VENDOR_HIP)
#include "interop/preload/driver/hip/driver.hpp"
#else
#error "define CISTERN_VENDOR_CUDA or CISTERN_VENDOR_HIP"
#endif

#include <atomic>

namespace cistern::preload::GPU_NAMESPACE {

namespace detail {
inline constinit std::atomic<const Functions*> loaded_functions{nullptr};
[[gnu::cold]] const Functions* loadFunctions() noexcept;
}  // namespace detail

/// The driver (HIP: its runtime) that the program has loaded; null as long as it has none.
/// Thread-safe, and the same for good once it is there.
inline const Functions* driver() noexcept {
  const Functions* const there = detail::loaded_functions.load(std::memory_order_acquire);
  if (there != nullptr) [[likely]]
    return there;
  return detail::loadFunctions();
}
/// Its handle; null as long as it has none.
void* driverLibrary() noexcept;

/// The stream that a handle names: 0 is what the spelling of the function says it is.
inline StreamHandle streamMeant(StreamHandle stream, bool per_thread) noexcept {
  if (stream != nullptr) return stream;
  return per_thread ? kPerThreadStream : kLegacyStream;
}

}  // namespace cistern::preload::GPU_NAMESPACE
