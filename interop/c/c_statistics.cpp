// The state of an allocator: statistics, options, limits.
#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "allocator/base/host_limits.hpp"
#include "interop/c/c_calls.hpp"

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
  return readSized(allocator, statistics, "cistern_statistics_t", kLeastStatistics,
                   [&](auto& of) { return structOf(of.allocator->memoryStats()); });
}

cistern_status_t cistern_reset_peak_statistics(cistern_allocator_t allocator) {
  return on(allocator, [&](auto& of) { of.allocator->resetPeakStats(); });
}

cistern_status_t cistern_statistics_json(cistern_allocator_t allocator, char* buffer,
                                         size_t* length) {
  return readText(allocator, buffer, length,
                  [&](auto& of) { return toJson(statRows(of.allocator->memoryStats())); });
}

cistern_status_t cistern_options(cistern_allocator_t allocator, char* buffer, size_t* length) {
  return readText(allocator, buffer, length,
                  [&](auto& of) { return of.allocator->options().conf(); });
}

cistern_status_t cistern_backend(cistern_allocator_t allocator, char* buffer, size_t* length) {
  return readText(allocator, buffer, length,
                  [&](auto& of) { return of.allocator->device().backend(); });
}

cistern_status_t cistern_set_limit(cistern_allocator_t allocator, uint64_t bytes) {
  return on(allocator, [&](auto& of) { of.allocator->setLimit(bytes); });
}

cistern_status_t cistern_limit(cistern_allocator_t allocator, uint64_t* bytes) {
  return read(allocator, bytes, "bytes", [&](auto& of) { return of.allocator->limit(); });
}

cistern_status_t cistern_set_memory_fraction(cistern_allocator_t allocator, double fraction) {
  return on(allocator, [&](auto& of) { of.allocator->setMemoryFraction(fraction); });
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

// Memory of the host for what the device has no room for.

cistern_status_t cistern_set_overflow(cistern_allocator_t allocator, uint64_t host_bytes) {
  return on(allocator, [&](auto& of) { of.allocator->setOverflow(host_bytes); });
}

cistern_status_t cistern_overflow(cistern_allocator_t allocator, cistern_overflow_t* overflow) {
  return guarded([&] {
    requireGiven(overflow, "overflow");
    requireSize(*overflow, "cistern_overflow_t");
    const OverflowReport report = Use<AllocatorObject>(wordOf(allocator))->allocator->overflow();
    overflow->host_bytes = report.host_bytes;
    overflow->reserved = report.reserved;
    overflow->most_reserved = report.most_reserved;
    overflow->handed_out = report.handed_out;
    overflow->would_do = report.would_do;
  });
}

cistern_status_t cistern_take_peak(cistern_allocator_t allocator, uint64_t* bytes) {
  return read(allocator, bytes, "bytes", [&](auto& of) { return of.allocator->takePeak(); });
}

cistern_status_t cistern_overflow_text(cistern_allocator_t allocator, char* buffer,
                                       size_t* length) {
  return readText(allocator, buffer, length,
                  [&](auto& of) { return of.allocator->overflow().text(); });
}

cistern_status_t cistern_host_bytes_left(uint64_t* bytes) {
  return guarded([&] {
    requireGiven(bytes, "bytes");
    *bytes = hostBytesLeftForPages();
  });
}
