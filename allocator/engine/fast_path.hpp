// What happens as a rule: the calling thread has a block of that size in its cache, and has place
// for one that it frees. No lock, no locked instruction, no device call, nothing allocated on the
// host, and nothing looked at that another thread writes. Everything else is in slow_path.hpp.
// Read with: cache/thread_cache.hpp. How many instructions it takes is kept by a test.
//
// Inline, for the two places that a program comes from: the verbs of CachingAllocator, and the C
// API's calls of the same names.
#pragma once

#include "allocator/engine/engine.hpp"
#include "cistern/allocator.hpp"

namespace cistern {
namespace fast_path {

// Out of line and with the verb's own arguments, so that a hit has nothing to keep for them.
void* miss(CachingAllocator& allocator, std::size_t bytes, Stream stream);
void freeElsewhere(CachingAllocator& allocator, void* pointer, const void* caller,
                   Block* block) noexcept;

// What the two return is what `hit` or `missed` does, so that each caller's whole verb is one
// function without a call. `hit` is given the memory; `missed` is called where nothing has changed
// yet.

template <class Hit, class Missed>
[[gnu::always_inline]] inline auto allocate(CachingAllocator& allocator, std::size_t bytes,
                                            Stream stream, Hit hit, Missed missed) {
  ThreadCache& cache = CacheTable::last();
  // The first comparison is for 0 too.
  if (bytes - 1 >= CacheBins::kDirectBytes || cache.stream() != stream ||
      !allocator.engine().caches.serves(cache)) [[unlikely]]
    return missed();
  bool far = false;
  Block* const block = cache.take(bytes, far);
  if (block == nullptr) [[unlikely]]
    return missed();
  const Address address = deviceAddress(*block);
  cache.recents().remember(address, *block);
  void* pointer = toPointer(address);
  if (far) [[unlikely]]
    pointer = cache.publish(pointer);
  return hit(pointer);
}

/// `caller`: the code that is remembered as the one that has freed. `missed` is given what the
/// pointer is known to be, or null.
template <class Hit, class Missed>
[[gnu::always_inline]] inline auto free(CachingAllocator& allocator, void* pointer,
                                        const void* caller, Hit hit, Missed missed) noexcept {
  ThreadCache& cache = CacheTable::last();
  Block* const block =
      allocator.engine().caches.has(cache) ? cache.recents().find(toAddress(pointer)) : nullptr;
  if (block == nullptr || !cache.give(*block, caller)) [[unlikely]]
    return missed(block);
  return hit();
}

}  // namespace fast_path
}  // namespace cistern
