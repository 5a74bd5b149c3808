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

/// The heap of the request's stream and pool. It is found, made for a stream that is named for the
/// first time, or taken over from one that was forgotten. Throws InvalidArgument for a stream that
/// is not alive, DeviceFailure, std::bad_alloc.
Heap& heapFor(Engine& engine, const Request& request);
/// A block for a request that the heap's free memory does not serve. A miss tries one step after
/// another, each a little further away. The first block found ends it. The steps stand in one table
/// in ladder.cpp. A request of a capture takes the steps that neither wait nor give anything
/// back. Throws OutOfMemory, nothing having changed apart from cached memory given back;
/// std::bad_alloc; what a callback or a pool's source throws.
Block& fallBack(Engine& engine, Heap& heap, const Request& request);

/// Takes a block back. `recent`: the block, if the thread was handed it lately; or null.
void free(Engine& engine, void* pointer, const void* caller, Block* recent) noexcept;
/// Takes back a block that was not looked up in the caches.
void freeAt(Engine& engine, Address address, const void* caller) noexcept;

}  // namespace cistern::slow_path
