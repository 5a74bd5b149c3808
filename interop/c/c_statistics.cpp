// The state of an allocator: statistics, options, limits.
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "interop/c/objects.hpp"
#include "interop/c/stat_value.hpp"
#include "interop/c/text_out.hpp"

using namespace cistern;
using namespace cistern::capi;

namespace cistern::capi {
namespace {

// The C structs are the arrays of the C++ ones, with names.
static_assert(sizeof(cistern_stat_t) == sizeof(StatValue));
static_assert(sizeof(cistern_stat_group_t) == sizeof(MemoryStats::Values));
static_assert(std::is_trivially_copyable_v<StatValue>);

cistern_stat_group_t groupOf(const MemoryStats::Values& values) {
  const auto of = [&](Stat stat) { return valueOf(values[std::size_t(stat)]); };
  return {of(Stat::kAllocation),     of(Stat::kSegment),
          of(Stat::kActive),         of(Stat::kInactiveSplit),
          of(Stat::kAllocatedBytes), of(Stat::kReservedBytes),
          of(Stat::kActiveBytes),    of(Stat::kInactiveSplitBytes),
          of(Stat::kRequestedBytes)};
}

cistern_statistics_t structOf(const MemoryStats& stats) {
  cistern_statistics_t out{};
  out.all = groupOf(stats.all);
  out.small_pool = groupOf(stats.small_pool);
  out.large_pool = groupOf(stats.large_pool);
  out.num_alloc_retries = stats.num_alloc_retries;
  out.num_ooms = stats.num_ooms;
  out.num_sync_all_streams = stats.num_sync_all_streams;
  out.num_device_alloc = stats.num_device_alloc;
  out.num_device_free = stats.num_device_free;
  out.num_misuses = stats.num_misuses;
  out.host_bytes = stats.host_bytes;
  out.peaks_exact = stats.peaks_exact ? 1 : 0;
  const PageCounts& pages = stats.pages;
  out.pages = {pages.created, pages.recycled, pages.revived,
               pages.retired, pages.returned, pages.freezes};
  out.memory_call_ns = stats.memory_call_ns;
  return out;
}

constexpr std::size_t kLeastStatistics = offsetof(cistern_statistics_t, small_pool);

}  // namespace
}  // namespace cistern::capi

cistern_status_t cistern_statistics(cistern_allocator_t allocator,
                                    cistern_statistics_t* statistics) {
  return guarded([&] {
    requireGiven(statistics, "statistics");
    const Use<AllocatorObject> use(wordOf(allocator));
    if (statistics->size < kLeastStatistics) {
      throw Failure(CISTERN_INVALID_ARGUMENT,
                    fmt::format("cistern_statistics_t::size is {}; it must be set to the struct's, "
                                "which is at least {}",
                                statistics->size, kLeastStatistics));
    }
    cistern_statistics_t all = structOf(use->allocator->memoryStats());
    all.size = std::min(statistics->size, sizeof(all));
    std::memcpy(statistics, &all, all.size);
  });
}

cistern_status_t cistern_reset_peak_statistics(cistern_allocator_t allocator) {
  return guarded([&] { Use<AllocatorObject>(wordOf(allocator))->allocator->resetPeakStats(); });
}

cistern_status_t cistern_statistics_json(cistern_allocator_t allocator, char* buffer,
                                         size_t* length) {
  return guarded([&] {
    requireGiven(length, "length");
    const Use<AllocatorObject> use(wordOf(allocator));
    putText(toJson(statRows(use->allocator->memoryStats())), buffer, *length);
  });
}

cistern_status_t cistern_options(cistern_allocator_t allocator, char* buffer, size_t* length) {
  return guarded([&] {
    requireGiven(length, "length");
    const Use<AllocatorObject> use(wordOf(allocator));
    putText(use->allocator->options().conf(), buffer, *length);
  });
}

cistern_status_t cistern_backend(cistern_allocator_t allocator, char* buffer, size_t* length) {
  return guarded([&] {
    requireGiven(length, "length");
    const Use<AllocatorObject> use(wordOf(allocator));
    putText(use->allocator->device().backend(), buffer, *length);
  });
}

cistern_status_t cistern_set_limit(cistern_allocator_t allocator, uint64_t bytes) {
  return guarded([&] { Use<AllocatorObject>(wordOf(allocator))->allocator->setLimit(bytes); });
}

cistern_status_t cistern_limit(cistern_allocator_t allocator, uint64_t* bytes) {
  return guarded([&] {
    requireGiven(bytes, "bytes");
    *bytes = Use<AllocatorObject>(wordOf(allocator))->allocator->limit();
  });
}

cistern_status_t cistern_set_memory_fraction(cistern_allocator_t allocator, double fraction) {
  return guarded(
      [&] { Use<AllocatorObject>(wordOf(allocator))->allocator->setMemoryFraction(fraction); });
}

cistern_status_t cistern_memory_info(cistern_allocator_t allocator, uint64_t* free_bytes,
                                     uint64_t* total_bytes) {
  return guarded([&] {
    requireGiven(free_bytes, "free_bytes");
    requireGiven(total_bytes, "total_bytes");
    const Use<AllocatorObject> use(wordOf(allocator));
    const MemoryInfo info = use->allocator->getMemoryInfo().orThrow();
    *free_bytes = info.free_bytes;
    *total_bytes = info.total_bytes;
  });
}
