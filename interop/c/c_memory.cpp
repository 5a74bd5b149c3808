// Blocks of memory. cistern_allocate and cistern_free are the two calls that are made all the time.
#include "allocator/engine/ground/hooks.hpp"
#include "allocator/engine/paths/fast_path.hpp"
#include "interop/c/c_calls.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace cistern::capi {
namespace {

/// The door of the handle. Note [Hits by handle]
struct OfHandle {
  Word handle;

  static constexpr bool kLocked = true;
  bool allowsHit(const ThreadCache& cache) const { return has(cache) && cache.allowsHits(); }
  bool has(const ThreadCache& cache) const { return cache.handle() == handle; }
  // Counted in the slot before the biased lock is given up, as a destroying call looks at it after
  // it has waited for that lock.
  void unlockAndPublish(ThreadCache& cache) const noexcept {
    std::atomic<std::uint32_t>& users = HandleTable<AllocatorObject>::slotOf(handle)->users;
    users.fetch_add(1, std::memory_order_seq_cst);
    cache.biasedLock().unlock();
    cache.publish();
    users.fetch_sub(1, std::memory_order_release);
  }
};

[[gnu::noinline]] cistern_status_t allocateMissed(Word handle, std::size_t bytes, void* stream,
                                                  void** out) noexcept {
  return guarded([&] {
    requireGiven(out, "out");
    const Use<AllocatorObject> use(handle);
    *out = fast_path::miss(*use->allocator, bytes, streamOf(stream));
  });
}

// Only here can a free be a wrong one.
[[gnu::noinline]] cistern_status_t freeMissed(Word handle, void* pointer, const void* caller,
                                              Block* block) noexcept {
  return guarded([&] {
    const Use<AllocatorObject> use(handle);
    withPointer(pointer,
                [&] { fast_path::freeElsewhere(*use->allocator, pointer, caller, block); });
  });
}

// One after the other: a request that the first cannot serve as a hit goes on in the next, out of
// line. So a hit sets up only what it needs.
template <class Sizes>
[[gnu::always_inline]] inline cistern_status_t allocateFrom(
    Word handle, std::size_t bytes, void* stream, void** out,
    decltype(allocateMissed)* next) noexcept {
  const auto missed = [&] { return next(handle, bytes, stream, out); };
  if (out == nullptr) [[unlikely]]
    return missed();
  const auto hit = [&](void* pointer) {
    *out = pointer;
    return CISTERN_OK;
  };
  return fast_path::allocate<Sizes>(CacheTable::last(), OfHandle{handle}, bytes, streamOf(stream),
                                    hit, missed);
}
[[gnu::noinline]] cistern_status_t allocateLarger(Word handle, std::size_t bytes, void* stream,
                                                  void** out) noexcept {
  return allocateFrom<fast_path::AllSizes>(handle, bytes, stream, out, &allocateMissed);
}

template <class Sizes>
[[gnu::always_inline]] inline cistern_status_t freeInto(Word handle, void* pointer,
                                                        const void* caller,
                                                        decltype(freeMissed)* next) noexcept {
  return fast_path::free<Sizes>(
      CacheTable::last(), OfHandle{handle}, fast_path::Recent{toAddress(pointer)}, caller,
      [] { return CISTERN_OK; },
      [&](Block* block) { return next(handle, pointer, caller, block); });
}
[[gnu::noinline]] cistern_status_t freeLarger(Word handle, void* pointer, const void* caller,
                                              Block*) noexcept {
  return freeInto<fast_path::AllSizes>(handle, pointer, caller, &freeMissed);
}

/// For the queries, of which the C++ ones say that no other argument can be wrong.
template <class Out, class Query>
cistern_status_t aboutBlock(cistern_allocator_t allocator, Out* out, const char* name,
                            Query query) noexcept {
  return read(allocator, out, name,
              [&](auto& of) { return aboutPointer([&] { return query(*of.allocator); }); });
}

}  // namespace
}  // namespace cistern::capi

cistern_status_t cistern_allocate(cistern_allocator_t allocator, size_t bytes, void* stream,
                                  void** out) {
  return allocateFrom<fast_path::DirectSizes>(wordOf(allocator), bytes, stream, out,
                                              &allocateLarger);
}

cistern_status_t cistern_allocate_aligned(cistern_allocator_t allocator, size_t bytes,
                                          size_t alignment, void* stream, void** out) {
  return read(allocator, out, "out",
              [&](auto& of) { return of.allocator->allocate(bytes, streamOf(stream), alignment); });
}

cistern_status_t cistern_free(cistern_allocator_t allocator, void* pointer) {
  return freeInto<fast_path::DirectSizes>(wordOf(allocator), pointer, __builtin_return_address(0),
                                          &freeLarger);
}

cistern_status_t cistern_record_stream(cistern_allocator_t allocator, void* pointer, void* stream) {
  return on(allocator, [&](auto& of) {
    withPointer(pointer, [&] { of.allocator->recordStream(pointer, streamOf(stream)); });
  });
}

cistern_status_t cistern_register_stream(cistern_allocator_t allocator, void* stream) {
  return on(allocator, [&](auto& of) { of.allocator->registerStream(streamOf(stream)); });
}

cistern_status_t cistern_forget_stream(cistern_allocator_t allocator, void* stream) {
  return on(allocator, [&](auto& of) {
    of.allocator->forgetStream(streamOf(stream));
    of.pinned->forgetStream(streamOf(stream));
  });
}

cistern_status_t cistern_empty_cache(cistern_allocator_t allocator) {
  return on(allocator, [&](auto& of) { of.allocator->emptyCache(); });
}

cistern_status_t cistern_block_size(cistern_allocator_t allocator, void* pointer, size_t* bytes) {
  return aboutBlock(allocator, bytes, "bytes", [&](auto& of) { return of.blockSize(pointer); });
}

cistern_status_t cistern_location_of(cistern_allocator_t allocator, const void* pointer,
                                     cistern_location_t* out) {
  return aboutBlock(allocator, out, "out",
                    [&](auto& of) { return cistern_location_t(of.locationOf(pointer)); });
}

cistern_status_t cistern_host_bytes_in(cistern_allocator_t allocator, const void* pointer,
                                       uint64_t* bytes) {
  return aboutBlock(allocator, bytes, "bytes", [&](auto& of) { return of.hostBytesIn(pointer); });
}

cistern_status_t cistern_base_allocation(cistern_allocator_t allocator, void* pointer, void** base,
                                         size_t* bytes) {
  return aboutBlock(allocator, base, "base", [&](auto& of) {
    requireGiven(bytes, "bytes");
    const BaseAllocation around = of.getBaseAllocation(pointer);
    *bytes = around.bytes;
    return around.base;
  });
}
