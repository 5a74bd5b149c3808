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

}  // namespace

DeviceStats TorchAllocator::getDeviceStats(DeviceIndex device) {
  using cistern::Stat;
  DeviceState& state = *asTorch([&] { return &at(device); });
  const std::uint64_t rejections = state.rejections;
  const cistern::MemoryStats now = asTorch([&] { return state.allocator.memoryStats(); });
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
  stats.num_alloc_retries = std::int64_t(now.num_alloc_retries);
  stats.num_ooms = std::int64_t(now.num_ooms - std::min(now.num_ooms, rejections));
  setRejections(stats, std::int64_t(rejections));
  stats.num_sync_all_streams = std::int64_t(now.num_sync_all_streams);
  stats.num_device_alloc = std::int64_t(now.num_device_alloc);
  stats.num_device_free = std::int64_t(now.num_device_free);
  stats.max_split_size = -1;  // as PyTorch's without an option: every block may be split
  return stats;
}

void TorchAllocator::resetAccumulatedStats(DeviceIndex device) {
  asTorch([&] { at(device).allocator.resetAccumulatedStats(); });
}

void TorchAllocator::resetPeakStats(DeviceIndex device) {
  asTorch([&] {
    DeviceState& state = at(device);
    state.keepPeak();
    state.allocator.resetPeakStats();
  });
}

std::uint64_t TorchAllocator::peakReserved(DeviceIndex device) const {
  DeviceState* const state = find(device);
  return state == nullptr ? 0 : state->keepPeak();
}

// Two that reset at once may both have the same peak; neither loses it.
std::uint64_t DeviceState::keepPeak() {
  const auto now = std::uint64_t(allocator.memoryStats()[cistern::Stat::kReservedBytes].peak);
  std::uint64_t most = most_reserved_.load();
  while (most < now && !most_reserved_.compare_exchange_weak(most, now)) {
  }
  return std::max(most, now);
}

}  // namespace cistern_torch
