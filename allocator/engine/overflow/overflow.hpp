// Memory of the host for requests that the device has no room for. Beside a stream's heap in a pool
// lies another, of pages of host memory, which holds such blocks. So what is asked for next finds
// the device's free memory first, and the host's after it. A large block there has pages of the
// device as far as there are some, and pages of the host for the rest (pages/sources.cpp).
#pragma once

#include "allocator/engine/engine.hpp"
#include "cistern/report.hpp"

namespace cistern {

/// Whether host memory may serve the request: overflow is on, and the pool has pages of the device.
inline bool mayOverflow(const Engine& engine, const Request& request) {
  return engine.overflow.limit() > 0 && request.pool->onPages() &&
         request.pool->location() == Location::kDevice;
}

/// A block of host memory that lies free, or null. No page is made. Pre: no heap's lock is held.
/// Throws std::bad_alloc.
Block* fromFreeHostMemory(Engine& engine, const Request& request);
/// A block of host memory, for which pages are made, or null. It prints a line at the first. Pre
/// and errors are the same.
Block* fromNewHostMemory(Engine& engine, const Request& request);

/// Gives back all that lies free, as emptyCache does, if that and what may still be made are enough
/// for the request. Then the same as fromNewHostMemory. For a request that would be refused.
Block* fromAllGivenBack(Engine& engine, const Request& request);

/// CachingAllocator has the contracts of these.
void setOverflow(Engine& engine, std::uint64_t host_bytes);
OverflowReport overflowOf(Engine& engine);

}  // namespace cistern
