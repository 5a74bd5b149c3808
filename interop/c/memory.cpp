// Blocks of memory. cistern_allocate and cistern_free are the two calls that are made all the time.
#include "allocator/engine/fast_path.hpp"
#include "allocator/engine/reports/misuse_scope.hpp"
#include "interop/c/objects.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace cistern::capi {
namespace {

// Out of line, so that what a hit needs is all that it sets up. Here a thread's first call comes
// by, and what is no handle is told.
[[gnu::cold, gnu::noinline]] cistern_status_t allocateCounted(Word handle, std::size_t bytes,
                                                              void* stream, void** out) noexcept {
  return guarded([&] {
    requireGiven(out, "out");
    const Use<AllocatorObject> use(handle);
    use.remember(*use->allocator);
    *out = fast_path::allocate(*use->allocator, bytes, streamOf(stream));
  });
}

[[gnu::cold, gnu::noinline]] cistern_status_t failMisuse() noexcept {
  return guarded([&] { throw Failure(CISTERN_INVALID_POINTER, MisuseScope::last().text()); });
}

[[gnu::cold, gnu::noinline]] cistern_status_t freeCounted(Word handle, void* pointer,
                                                          const void* caller) noexcept {
  return guarded([&] {
    const Use<AllocatorObject> use(handle);
    use.remember(*use->allocator);
    const MisuseScope scope(pointer);
    fast_path::free(*use->allocator, pointer, caller);
    if (scope.any()) throw Failure(CISTERN_INVALID_POINTER, MisuseScope::last().text());
  });
}

/// For the queries, of which the C++ ones say that no other argument can be wrong.
template <class Query>
cistern_status_t aboutBlock(cistern_allocator_t allocator, Query query) noexcept {
  return guarded([&] {
    const Use<AllocatorObject> use(wordOf(allocator));
    try {
      query(*use->allocator);
    } catch (const InvalidArgument& error) {
      throw Failure(CISTERN_INVALID_POINTER, error.what());
    }
  });
}

}  // namespace
}  // namespace cistern::capi

cistern_status_t cistern_allocate(cistern_allocator_t allocator, size_t bytes, void* stream,
                                  void** out) {
  const FrequentUse use(wordOf(allocator));
  if (!use || out == nullptr) [[unlikely]]
    return allocateCounted(wordOf(allocator), bytes, stream, out);
  try {
    *out = fast_path::allocate(*use, bytes, streamOf(stream));
    return CISTERN_OK;
  } catch (...) {
    return failCurrent();
  }
}

cistern_status_t cistern_free(cistern_allocator_t allocator, void* pointer) {
  const void* const caller = __builtin_return_address(0);
  const FrequentUse use(wordOf(allocator));
  if (!use) [[unlikely]]
    return freeCounted(wordOf(allocator), pointer, caller);
  const MisuseScope scope(pointer);
  fast_path::free(*use, pointer, caller);
  if (scope.any()) [[unlikely]]
    return failMisuse();
  return CISTERN_OK;
}

cistern_status_t cistern_record_stream(cistern_allocator_t allocator, void* pointer, void* stream) {
  return guarded([&] {
    const Use<AllocatorObject> use(wordOf(allocator));
    const MisuseScope scope(pointer);
    use->allocator->recordStream(pointer, streamOf(stream));
    if (scope.any()) throw Failure(CISTERN_INVALID_POINTER, MisuseScope::last().text());
  });
}

cistern_status_t cistern_forget_stream(cistern_allocator_t allocator, void* stream) {
  return guarded([&] {
    const Use<AllocatorObject> use(wordOf(allocator));
    use->allocator->forgetStream(streamOf(stream));
  });
}

cistern_status_t cistern_empty_cache(cistern_allocator_t allocator) {
  return guarded([&] { Use<AllocatorObject>(wordOf(allocator))->allocator->emptyCache(); });
}

cistern_status_t cistern_block_size(cistern_allocator_t allocator, void* pointer, size_t* bytes) {
  return aboutBlock(allocator, [&](CachingAllocator& of) {
    requireGiven(bytes, "bytes");
    *bytes = of.blockSize(pointer);
  });
}

cistern_status_t cistern_base_allocation(cistern_allocator_t allocator, void* pointer, void** base,
                                         size_t* bytes) {
  return aboutBlock(allocator, [&](CachingAllocator& of) {
    requireGiven(base, "base");
    requireGiven(bytes, "bytes");
    const BaseAllocation around = of.getBaseAllocation(pointer);
    *base = around.base;
    *bytes = around.bytes;
  });
}
