// torch.cuda.memory_stats: Cistern counts the same things under the same names.
#include <algorithm>
#include <cstdint>

#include "errors.hpp"
#include "torch_allocator.hpp"

namespace cistern_torch {
namespace {

using c10::CachingAllocator::StatArray;
using c10::CachingDeviceAllocator::DeviceStats;

StatArray statsOf(const cistern::MemoryStats& stats, cistern::Stat which) {
  const auto i = std::size_t(which);
  return {statOf(stats.all[i]), statOf(stats.small_pool[i]), statOf(stats.large_pool[i])};
}

// Two that reset at once may both have the same peak; neither loses it.
std::uint64_t keepMost(std::atomic<std::uint64_t>& kept, const cistern::StatValue& value) {
  const auto now = std::uint64_t(value.peak);
  std::uint64_t most = kept.load();
  while (most < now && !kept.compare_exchange_weak(most, now)) {
  }
  return std::max(most, now);
}

}  // namespace

DeviceState::EventCounts DeviceState::countsOf(const cistern::MemoryStats& now) const {
  const std::uint64_t rejected = std::min(rejections.load(), now.num_ooms);
  return {now.num_alloc_retries,    now.num_ooms - rejected, rejected,
          now.num_sync_all_streams, now.num_device_alloc,    now.num_device_free};
}

DeviceStats DeviceState::statistics() {
  using cistern::Stat;
  const std::lock_guard lock(counting_);
  const cistern::MemoryStats now = allocator.memoryStats();
  DeviceStats stats;
  stats.allocation = statsOf(now, Stat::kAllocation);
  stats.segment = statsOf(now, Stat::kSegment);
  stats.active = statsOf(now, Stat::kActive);
  stats.inactive_split = statsOf(now, Stat::kInactiveSplit);
  stats.allocated_bytes = statsOf(now, Stat::kAllocatedBytes);
  stats.reserved_bytes = statsOf(now, Stat::kReservedBytes);
  stats.active_bytes = statsOf(now, Stat::kActiveBytes);
  stats.inactive_split_bytes = statsOf(now, Stat::kInactiveSplitBytes);
  stats.requested_bytes = statsOf(now, Stat::kRequestedBytes);
  EventCounts counts = countsOf(now);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] -= counted_before_[i];
  stats.num_alloc_retries = std::int64_t(counts[0]);
  stats.num_ooms = std::int64_t(counts[1]);
  setRejections(stats, std::int64_t(counts[2]));
  stats.num_sync_all_streams = std::int64_t(counts[3]);
  stats.num_device_alloc = std::int64_t(counts[4]);
  stats.num_device_free = std::int64_t(counts[5]);
  if (kPoolFigures) {
    for (const auto& [pool, reserved] : pools.reserved()) addPool(stats, pool, reserved);
  }
  stats.max_split_size = -1;  // as PyTorch's without an option: every block may be split
  return stats;
}

void DeviceState::resetAccumulated() {
  const std::lock_guard lock(counting_);
  allocator.resetAccumulatedStats();
  pools.resetReservedTotals();
  counted_before_ = countsOf(allocator.memoryStats());
}

DeviceStats TorchAllocator::getDeviceStats(DeviceIndex device) {
  return asTorch([&] { return at(device).statistics(); });
}

void TorchAllocator::resetAccumulatedStats(DeviceIndex device) {
  asTorch([&] { at(device).resetAccumulated(); });
}

void TorchAllocator::resetPeakStats(DeviceIndex device) {
  asTorch([&] {
    DeviceState& state = at(device);
    state.usage();  // keeps the peaks
    state.allocator.resetPeakStats();
    state.pools.resetReservedPeaks();
  });
}

Usage DeviceState::usage() {
  const cistern::MemoryStats now = allocator.memoryStats();
  return {keepMost(most_requested_, now[cistern::Stat::kRequestedBytes]),
          keepMost(most_reserved_, now[cistern::Stat::kReservedBytes]),
          now.num_device_alloc,
          now.num_device_free,
          now.num_alloc_retries,
          now.num_ooms,
          now.pages.recycled,
          now.memory_call_ns};
}

}  // namespace cistern_torch
