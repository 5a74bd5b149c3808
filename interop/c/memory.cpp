// Blocks of memory. cistern_allocate and cistern_free are the two calls that are made all the time.
#include <fmt/format.h>

#include "allocator/engine/engine.hpp"
#include "allocator/engine/reports/misuse_scope.hpp"
#include "interop/c/objects.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace cistern::capi {
namespace {

// Out of line, so that what a hit needs is all that it sets up. Here a thread also comes to its
// record in Callers, and what is no handle is told.
[[gnu::cold, gnu::noinline]] cistern_status_t allocateCounted(Word handle, std::size_t bytes,
                                                              void* stream, void** out) noexcept {
  return guarded([&] {
    requireGiven(out, "out");
    Callers::join();
    const Use<AllocatorObject> use(handle);
    *out = use->allocator->allocate(bytes, streamOf(stream));
  });
}

[[gnu::cold, gnu::noinline]] cistern_status_t failMisuse(const Misuse& misuse) noexcept {
  return guarded([&] { throw Failure(CISTERN_INVALID_POINTER, misuse.text()); });
}

cistern_status_t freeNoted(AllocatorObject& object, void* pointer, const void* caller) noexcept {
  const MisuseScope scope;
  freeFor(*object.allocator, pointer, caller);
  if (scope.any()) [[unlikely]]
    return failMisuse(scope.noted());
  return CISTERN_OK;
}

[[gnu::cold, gnu::noinline]] cistern_status_t freeCounted(Word handle, void* pointer,
                                                          const void* caller) noexcept {
  cistern_status_t status = CISTERN_OK;
  const cistern_status_t use = guarded([&] {
    Callers::join();
    const Use<AllocatorObject> counted(handle);
    status = freeNoted(*counted, pointer, caller);
  });
  return use != CISTERN_OK ? use : status;
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
  const Word handle = wordOf(allocator);
  const FrequentUse<AllocatorObject> use(handle);
  if (!use || out == nullptr) [[unlikely]]
    return allocateCounted(handle, bytes, stream, out);
  try {
    *out = use->allocator->allocate(bytes, streamOf(stream));
    return CISTERN_OK;
  } catch (...) {
    return failCurrent();
  }
}

cistern_status_t cistern_free(cistern_allocator_t allocator, void* pointer) {
  const Word handle = wordOf(allocator);
  const FrequentUse<AllocatorObject> use(handle);
  if (!use) [[unlikely]]
    return freeCounted(handle, pointer, __builtin_return_address(0));
  return freeNoted(*use.operator->(), pointer, __builtin_return_address(0));
}

cistern_status_t cistern_record_stream(cistern_allocator_t allocator, void* pointer, void* stream) {
  return guarded([&] {
    const Use<AllocatorObject> use(wordOf(allocator));
    const MisuseScope scope;
    use->allocator->recordStream(pointer, streamOf(stream));
    if (scope.any()) throw Failure(CISTERN_INVALID_POINTER, scope.noted().text());
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
