// Pinned host memory.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "allocator/engine/ground/hooks.hpp"
#include "interop/c/c_calls.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace cistern::capi {
namespace {

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
  return read(allocator, out, "out", [&](auto& of) { return of.pinned->allocate(bytes); });
}

cistern_status_t cistern_pinned_free(cistern_allocator_t allocator, void* pointer) {
  return on(allocator, [&](auto& of) { withPointer(pointer, [&] { of.pinned->free(pointer); }); });
}

cistern_status_t cistern_pinned_record_stream(cistern_allocator_t allocator, void* pointer,
                                              void* stream) {
  return on(allocator, [&](auto& of) {
    withPointer(pointer, [&] { of.pinned->recordStream(pointer, streamOf(stream)); });
  });
}

cistern_status_t cistern_pinned_empty_cache(cistern_allocator_t allocator) {
  return on(allocator, [&](auto& of) { of.pinned->emptyCache(); });
}

cistern_status_t cistern_pinned_block_size(cistern_allocator_t allocator, const void* pointer,
                                           size_t* bytes) {
  return read(allocator, bytes, "bytes", [&](auto& of) {
    return aboutPointer([&] { return of.pinned->blockSize(pointer); });
  });
}

cistern_status_t cistern_pinned_set_limit(cistern_allocator_t allocator, uint64_t bytes) {
  return on(allocator, [&](auto& of) { of.pinned->setLimit(bytes); });
}

cistern_status_t cistern_pinned_limit(cistern_allocator_t allocator, uint64_t* bytes) {
  return read(allocator, bytes, "bytes", [&](auto& of) { return of.pinned->limit(); });
}

cistern_status_t cistern_pinned_statistics(cistern_allocator_t allocator,
                                           cistern_pinned_statistics_t* statistics) {
  return readSized(allocator, statistics, "cistern_pinned_statistics_t", kLeastPinned,
                   [&](auto& of) { return structOf(of.pinned->stats()); });
}

cistern_status_t cistern_pinned_reset_peak_statistics(cistern_allocator_t allocator) {
  return on(allocator, [&](auto& of) { of.pinned->resetPeakStats(); });
}
