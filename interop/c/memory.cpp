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
    *out = use->allocator->allocate(bytes, streamOf(stream));
  });
}

[[gnu::cold, gnu::noinline]] cistern_status_t freeCounted(Word handle, void* pointer,
                                                          const void* caller) noexcept {
  return guarded([&] {
    const Use<AllocatorObject> use(handle);
    use.remember(*use->allocator);
    const MisuseScope scope(pointer);
    fast_path::freeElsewhere(*use->allocator, pointer, caller, nullptr);
    if (scope.any()) throw Failure(CISTERN_INVALID_POINTER, MisuseScope::last().text());
  });
}

// What is no hit of the thread's cache. The handle is the allocator's until the end: `mine` says
// so.
[[gnu::noinline]] cistern_status_t allocateMissed(Callers::Record& mine, CachingAllocator& of,
                                                  std::size_t bytes, void* stream, Word handle,
                                                  void** out) noexcept {
  const Stay stay(mine);
  if (!stay || out == nullptr) [[unlikely]]
    return allocateCounted(handle, bytes, stream, out);
  try {
    *out = fast_path::miss(of, bytes, streamOf(stream));
    return CISTERN_OK;
  } catch (...) {
    return failCurrent();
  }
}

// Only here can a free be a wrong one.
[[gnu::noinline]] cistern_status_t freeMissed(Callers::Record& mine, CachingAllocator& of,
                                              void* pointer, const void* caller, Block* block,
                                              Word handle) noexcept {
  const Stay stay(mine);
  if (!stay) [[unlikely]]
    return freeCounted(handle, pointer, caller);
  const MisuseScope scope(pointer);
  fast_path::freeElsewhere(of, pointer, caller, block);
  if (!scope.any()) [[likely]]
    return CISTERN_OK;
  return guarded([] { throw Failure(CISTERN_INVALID_POINTER, MisuseScope::last().text()); });
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
  void* of = nullptr;
  Callers::Record* const mine = Callers::enter(handle, of);
  if (mine == nullptr) [[unlikely]]
    return allocateCounted(handle, bytes, stream, out);
  auto& from = *static_cast<CachingAllocator*>(of);
  const auto missed = [&] { return allocateMissed(*mine, from, bytes, stream, handle, out); };
  if (out == nullptr) [[unlikely]]
    return missed();
  const auto hit = [&](void* pointer) {
    Callers::leave(*mine);
    *out = pointer;
    return CISTERN_OK;
  };
  return fast_path::allocate(from, bytes, streamOf(stream), hit, missed);
}

cistern_status_t cistern_free(cistern_allocator_t allocator, void* pointer) {
  const void* const caller = __builtin_return_address(0);
  const Word handle = wordOf(allocator);
  void* of = nullptr;
  Callers::Record* const mine = Callers::enter(handle, of);
  if (mine == nullptr) [[unlikely]]
    return freeCounted(handle, pointer, caller);
  auto& to = *static_cast<CachingAllocator*>(of);
  const auto hit = [&] {
    Callers::leave(*mine);
    return CISTERN_OK;
  };
  const auto missed = [&](Block* block) {
    return freeMissed(*mine, to, pointer, caller, block, handle);
  };
  return fast_path::free(to, pointer, caller, hit, missed);
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
    use->pinned->forgetStream(streamOf(stream));
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
