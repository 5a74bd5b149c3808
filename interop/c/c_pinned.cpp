// Pinned host memory.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "allocator/engine/ground/hooks.hpp"
#include "interop/c/objects.hpp"
#include "interop/c/stat_value.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace cistern::capi {
namespace {

void requireUsed(const MisuseScope& scope) {
  if (scope.misuse()) throw Failure(CISTERN_INVALID_POINTER, scope.misuse()->text());
}

cistern_pinned_statistics_t structOf(const PinnedStats& stats) {
  cistern_pinned_statistics_t out{};
  out.allocation = valueOf(stats.allocation);
  out.segment = valueOf(stats.segment);
  out.active = valueOf(stats.active);
  out.requested_bytes = valueOf(stats.requested_bytes);
  out.allocated_bytes = valueOf(stats.allocated_bytes);
  out.active_bytes = valueOf(stats.active_bytes);
  out.reserved_bytes = valueOf(stats.reserved_bytes);
  out.num_host_alloc = stats.num_host_alloc;
  out.num_host_free = stats.num_host_free;
  out.num_alloc_retries = stats.num_alloc_retries;
  out.num_ooms = stats.num_ooms;
  out.num_waits = stats.num_waits;
  out.num_misuses = stats.num_misuses;
  out.host_bytes = stats.host_bytes;
  return out;
}

constexpr std::size_t kLeastPinned = offsetof(cistern_pinned_statistics_t, num_host_alloc);

}  // namespace
}  // namespace cistern::capi

cistern_status_t cistern_pinned_allocate(cistern_allocator_t allocator, size_t bytes, void** out) {
  return guarded([&] {
    requireGiven(out, "out");
    *out = Use<AllocatorObject>(wordOf(allocator))->pinned->allocate(bytes);
  });
}

cistern_status_t cistern_pinned_free(cistern_allocator_t allocator, void* pointer) {
  return guarded([&] {
    const Use<AllocatorObject> use(wordOf(allocator));
    const MisuseScope scope(pointer);
    use->pinned->free(pointer);
    requireUsed(scope);
  });
}

cistern_status_t cistern_pinned_record_stream(cistern_allocator_t allocator, void* pointer,
                                              void* stream) {
  return guarded([&] {
    const Use<AllocatorObject> use(wordOf(allocator));
    const MisuseScope scope(pointer);
    use->pinned->recordStream(pointer, streamOf(stream));
    requireUsed(scope);
  });
}

cistern_status_t cistern_pinned_empty_cache(cistern_allocator_t allocator) {
  return guarded([&] { Use<AllocatorObject>(wordOf(allocator))->pinned->emptyCache(); });
}

cistern_status_t cistern_pinned_block_size(cistern_allocator_t allocator, const void* pointer,
                                           size_t* bytes) {
  return guarded([&] {
    requireGiven(bytes, "bytes");
    const Use<AllocatorObject> use(wordOf(allocator));
    try {
      *bytes = use->pinned->blockSize(pointer);
    } catch (const InvalidArgument& error) {
      throw Failure(CISTERN_INVALID_POINTER, error.what());
    }
  });
}

cistern_status_t cistern_pinned_set_limit(cistern_allocator_t allocator, uint64_t bytes) {
  return guarded([&] { Use<AllocatorObject>(wordOf(allocator))->pinned->setLimit(bytes); });
}

cistern_status_t cistern_pinned_limit(cistern_allocator_t allocator, uint64_t* bytes) {
  return guarded([&] {
    requireGiven(bytes, "bytes");
    *bytes = Use<AllocatorObject>(wordOf(allocator))->pinned->limit();
  });
}

cistern_status_t cistern_pinned_statistics(cistern_allocator_t allocator,
                                           cistern_pinned_statistics_t* statistics) {
  return guarded([&] {
    requireGiven(statistics, "statistics");
    const Use<AllocatorObject> use(wordOf(allocator));
    if (statistics->size < kLeastPinned) {
      throw Failure(CISTERN_INVALID_ARGUMENT,
                    fmt::format("cistern_pinned_statistics_t::size is {}; it must be set to the "
                                "struct's, which is at least {}",
                                statistics->size, kLeastPinned));
    }
    cistern_pinned_statistics_t all = structOf(use->pinned->stats());
    all.size = std::min(statistics->size, sizeof(all));
    std::memcpy(statistics, &all, all.size);
  });
}

cistern_status_t cistern_pinned_reset_peak_statistics(cistern_allocator_t allocator) {
  return guarded([&] { Use<AllocatorObject>(wordOf(allocator))->pinned->resetPeakStats(); });
}
