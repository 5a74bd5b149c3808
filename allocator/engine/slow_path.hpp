// A request that the thread's cache does not serve at once (fast_path.hpp), and a free that it does
// not take.
//
//   allocate                                               allocate_path.cpp
//     the thread's cache, larger sizes and other streams   cache/thread_cache.hpp
//     allocateIn                  in one pool
//       serve                     under the heap's lock: remote frees, then the best fit
//         miss                    fallbacks::serve, one step after another
//     allocateRouted              while some scope or capture is active
//       Recording::pin            in a capture: the graph knows the address
//
//   free                                                   free_path.cpp
//     the thread's cache, larger sizes                     cache/thread_cache.hpp
//     sendToOwner                 a message to the cache of another thread, cache/remote_frees.hpp
//     freeToHeap                  under the heap's lock: the cache makes room, or the heap takes it
//       Recording::free           in a capture into the heap's pool
//       deferFree                 other streams still use the block: streams/cross_stream.hpp
//       afterFree                 what is due afterwards, with no lock held: giving_back.hpp
//
// Thread-safe. Nothing here may be called with a heap's lock held.
#pragma once

#include "allocator/engine/engine.hpp"

namespace cistern::slow_path {

/// CachingAllocator::allocate, which says what it throws.
void* allocate(Engine& engine, std::size_t bytes, Stream stream);
/// The same in the pool given; in a capture's if one records the stream. Pre: the pool is live, and
/// stays so meanwhile.
void* allocate(Engine& engine, std::size_t bytes, Stream stream, Pool& pool);

/// The heap of the request's stream and pool: found, made for a stream that is named for the first
/// time, or taken over from one that is gone. Throws InvalidArgument for a stream that is not
/// alive, DeviceFailure, std::bad_alloc.
Heap& heapFor(Engine& engine, const Request& request);

/// Takes a block back. `recent`: the block, where the thread's last cache knew it; or null.
void free(Engine& engine, void* pointer, const void* caller, Block* recent) noexcept;
/// The same of a block that was not looked up in the caches.
void freeAt(Engine& engine, Address address, const void* caller) noexcept;

}  // namespace cistern::slow_path
