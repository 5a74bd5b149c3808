// Memory of the host for requests that the device has no room for. Beside a stream's heap in a pool
// lies another, of pages of host memory. It holds such blocks, whole. So what is asked for next
// finds the device's free memory first, and the host's after it.
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

/// CachingAllocator has the contracts of these.
void setOverflow(Engine& engine, std::uint64_t host_bytes);
OverflowReport overflowOf(Engine& engine);

}  // namespace cistern
