// A request that the thread's cache does not serve at once (fast_path.hpp), and a free that it does
// not take. The document docs/life-of-an-allocation.md follows each, call by call.
//
// Thread-safe. Nothing here may be called with a heap's lock held.
#pragma once

#include "allocator/engine/engine.hpp"

namespace cistern::slow_path {

/// CachingAllocator::allocate, which says what it throws.
void* allocate(Engine& engine, std::size_t bytes, Stream stream);
/// CachingAllocator::allocate in the pool given; in a capture's pool if one records the stream.
/// Pre: the pool is live, and stays so meanwhile.
void* allocate(Engine& engine, std::size_t bytes, Stream stream, Pool& pool);

/// CachingAllocator::allocate with an alignment, in the pool named, or where a request goes that
/// names none. Pre: as above.
void* allocateAligned(Engine& engine, std::size_t bytes, Stream stream, Pool* named,
                      std::size_t alignment);

/// The heap of the request's stream and pool. It is found, made for a stream that is named for the
/// first time, or taken over from one that was forgotten. Throws InvalidArgument for a stream that
/// is not alive, DeviceFailure, std::bad_alloc.
Heap& heapFor(Engine& engine, const Request& request);
/// A block for a request that no cache serves, nor the heap's free memory where it is `searched`.
/// A miss tries one step after another, each a little further away. The first block found ends it.
/// The steps stand in one table in ladder.cpp. A request of a capture takes the steps that neither
/// wait nor give anything back. Throws OutOfMemory, nothing having changed apart from cached memory
/// given back; std::bad_alloc; what a callback or a pool's source throws.
Block& fallBack(Engine& engine, Heap& heap, const Request& request, bool searched = false);

// ---- A pool's limit (Pools::setLimit) ----------------------------------------------------------

/// Throws OutOfMemory if the limit has no room for the request. It waits for queued work first,
/// except for a capture, and asks the program's callbacks. Throws what they throw.
void requireRoomWithin(Engine& engine, const Request& request);
/// The request's block, if the pool is within its limit with it. Otherwise other threads have
/// allocated meanwhile: frees the block and throws OutOfMemory.
Block& keptWithin(Engine& engine, const Request& request, Block& block);

// ---- Host memory for what the device has no room for (overflow.cpp). Beside a stream's heap in a
// pool lies another, of pages of host memory, which holds such blocks. A large block there has
// pages of the device as far as there are some, and pages of the host for the rest
// (pages/sources.cpp). Each of these is a step of a miss. Pre: no heap's lock is held. They throw
// std::bad_alloc.

/// Whether host memory may serve the request: overflow is on, and the pool has pages of the device.
inline bool mayOverflow(const Engine& engine, const Request& request) {
  return engine.overflow.limit() > 0 && request.pool->onPages() &&
         request.pool->location() == Location::kDevice;
}
/// A block of host memory that lies free, or null. No page is made.
Block* fromFreeHostMemory(Engine& engine, const Request& request);
/// A block of host memory, for which pages are made, or null. It prints a line at the first.
Block* fromNewHostMemory(Engine& engine, const Request& request);
/// Gives back all that lies free, as emptyCache does, if that and what may still be made are enough
/// for the request. Then the same as fromNewHostMemory. For a request that would be refused.
Block* fromAllGivenBack(Engine& engine, const Request& request);

// ---- Frees

/// Takes a block back. `recent`: the block, if the thread was handed it lately; or null.
void free(Engine& engine, void* pointer, const void* caller, Block* recent) noexcept;
/// Takes back a block that was not looked up in the caches.
void freeAt(Engine& engine, Address address, const void* caller) noexcept;

}  // namespace cistern::slow_path
