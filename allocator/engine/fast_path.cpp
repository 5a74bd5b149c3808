// What happens as a rule: the calling thread has a block of that size in its cache, and has place
// for one that it frees. No lock, no locked instruction, no device call, nothing allocated on the
// host, and nothing looked at that another thread writes. Everything else is in allocate_path.cpp
// and free_path.cpp. Read with: cache/thread_cache.hpp. How many instructions it takes is kept by a
// test.
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

void* CachingAllocator::allocate(std::size_t bytes, Stream stream) {
  ThreadCache& cache = CacheTable::last();
  // The first comparison is for 0 too.
  if (bytes - 1 >= CacheBins::kDirectBytes || cache.stream() != stream ||
      !engine_.core.caches.serves(cache)) [[unlikely]]
    return engine_.allocate_path.allocate(bytes, stream);
  bool far = false;
  Block* const block = cache.take(bytes, far);
  if (block == nullptr) [[unlikely]]
    return engine_.allocate_path.allocate(bytes, stream);
  const Address address = deviceAddress(*block);
  cache.recents().remember(address, *block);
  if (far) [[unlikely]]
    return cache.publish(toPointer(address));
  return toPointer(address);
}

void CachingAllocator::free(void* pointer) noexcept {
  ThreadCache& cache = CacheTable::last();
  const void* const caller = __builtin_return_address(0);
  Block* const block =
      engine_.core.caches.has(cache) ? cache.recents().find(toAddress(pointer)) : nullptr;
  if (block == nullptr || !cache.give(*block, caller)) [[unlikely]]
    return engine_.free_path.free(pointer, caller, block);
}

}  // namespace cistern
