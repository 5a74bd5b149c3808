// What happens as a rule: the calling thread has a block of that size in its cache, and has place
// for one that it frees. No lock, no locked instruction, no device call, nothing allocated on the
// host, and nothing looked at that another thread writes. Everything else is in allocate_path.cpp
// and free_path.cpp. Read with: cache/thread_cache.hpp. How many instructions it takes is kept by a
// test.
#include "allocator/engine/engine.hpp"
#include "cistern/allocator.hpp"

namespace cistern {
namespace {

// Out of line and with the verb's own arguments, so that a hit has nothing to keep for them.
[[gnu::noinline]] void* miss(CachingAllocator& allocator, std::size_t bytes, Stream stream) {
  return allocator.engine().allocate_path.allocate(bytes, stream);
}

[[gnu::noinline]] void freeElsewhere(CachingAllocator& allocator, void* pointer, const void* caller,
                                     Block* block) noexcept {
  allocator.engine().free_path.free(pointer, caller, block);
}

}  // namespace

void* CachingAllocator::allocate(std::size_t bytes, Stream stream) {
  ThreadCache& cache = CacheTable::last();
  // The first comparison is for 0 too.
  if (bytes - 1 >= CacheBins::kDirectBytes || cache.stream() != stream ||
      !engine_->core.caches.serves(cache)) [[unlikely]]
    return miss(*this, bytes, stream);
  bool far = false;
  Block* const block = cache.take(bytes, far);
  if (block == nullptr) [[unlikely]]
    return miss(*this, bytes, stream);
  const Address address = deviceAddress(*block);
  cache.recents().remember(address, *block);
  if (far) [[unlikely]]
    return cache.publish(toPointer(address));
  return toPointer(address);
}

// The code that frees is the verb's caller, or who called the caller (free_path.hpp).
static inline void freeNow(CachingAllocator& allocator, void* pointer,
                           const void* caller) noexcept {
  ThreadCache& cache = CacheTable::last();
  Block* const block = allocator.engine().core.caches.has(cache)
                           ? cache.recents().find(toAddress(pointer))
                           : nullptr;
  if (block == nullptr || !cache.give(*block, caller)) [[unlikely]]
    return freeElsewhere(allocator, pointer, caller, block);
}

void CachingAllocator::free(void* pointer) noexcept {
  freeNow(*this, pointer, __builtin_return_address(0));
}

void freeFor(CachingAllocator& allocator, void* pointer, const void* caller) noexcept {
  freeNow(allocator, pointer, caller);
}

}  // namespace cistern
