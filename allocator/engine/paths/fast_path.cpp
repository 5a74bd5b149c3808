#include "allocator/engine/paths/fast_path.hpp"

#include "allocator/engine/paths/slow_path.hpp"

namespace cistern {
void* CachingAllocator::allocate(std::size_t bytes, Stream stream) {
  return fast_path::allocate(
      CacheTable::last(), fast_path::OfAllocator(engine_->caches), bytes, stream,
      [](void* pointer) { return pointer; }, [&] { return fast_path::miss(*this, bytes, stream); });
}

void CachingAllocator::free(void* pointer) noexcept {
  const void* const caller = __builtin_return_address(0);
  fast_path::free(
      CacheTable::last(), fast_path::OfAllocator(engine_->caches),
      fast_path::Recent{toAddress(pointer)}, caller, [] {},
      [=, this](Block* block) { fast_path::freeElsewhere(*this, pointer, caller, block); });
}

namespace fast_path {

[[gnu::noinline]] void* miss(CachingAllocator& allocator, std::size_t bytes, Stream stream) {
  return slow_path::allocate(allocator.engine(), bytes, stream);
}

[[gnu::noinline]] void freeElsewhere(CachingAllocator& allocator, void* pointer, const void* caller,
                                     Block* block) noexcept {
  slow_path::free(allocator.engine(), pointer, caller, block);
}

}  // namespace fast_path
}  // namespace cistern
