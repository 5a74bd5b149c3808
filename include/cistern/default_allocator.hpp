// One allocator for each device that the whole process shares, for programs that want cudaMalloc's
// two calls and nothing to carry around:
//
//   void* tensor = cistern::allocate(bytes, stream);
//   cistern::free(tensor);
//
// The first call for a device opens it ("auto": CUDA, else HIP, else a simulated one) and makes its
// allocator, with the options of CISTERN_CONF. It stays until the process ends, and what is
// allocated then is left to the driver to take back: static objects may free into it to the very
// end.
#pragma once

#include <cstddef>

#include "cistern/allocator.hpp"
#include "cistern/current.hpp"
#include "cistern/pinned.hpp"
#include "cistern/pool.hpp"

namespace cistern {

/// The device's allocator. Thread-safe; the reference stays valid. Throws InvalidArgument for an
/// ordinal out of range, and what openDevice and CachingAllocator throw; the next call tries again.
CISTERN_API CachingAllocator& allocator(int device = currentDevice());

/// Its pools, made when first asked for. As allocator().
CISTERN_API Pools& pools(int device = currentDevice());

/// Pinned host memory for copies on its streams. As allocator().
CISTERN_API PinnedAllocator& pinnedAllocator(int device = currentDevice());

/// CachingAllocator::allocate on the calling thread's current device: that which cudaSetDevice, or
/// a DeviceGuard, has set. Throws what that and allocator() throw.
[[nodiscard]] CISTERN_API void* allocate(std::size_t bytes, Stream stream);
/// On the thread's current stream there.
[[nodiscard]] CISTERN_API void* allocate(std::size_t bytes);

/// Takes back a block of any device's shared allocator, whichever device is current. A pointer that
/// is none's is reported as CachingAllocator::free does.
CISTERN_API void free(void* pointer) noexcept;

/// CachingAllocator::recordStream for a block of any device's shared allocator.
CISTERN_API void recordStream(void* pointer, Stream stream);

}  // namespace cistern
