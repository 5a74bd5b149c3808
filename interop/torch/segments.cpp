#include "segments.hpp"

#include <algorithm>

#include "cistern/statistics.hpp"

namespace cistern_torch {
namespace {

theirs::SegmentInfo emptySegment(const DeviceState& state, const cistern::SnapshotSegment& of,
                                 std::size_t address) {
  theirs::SegmentInfo segment;
  segment.device = state.device;
  segment.address = address;
  segment.stream = reinterpret_cast<cudaStream_t>(of.stream.raw);
  segment.is_large = of.kind == cistern::SizeKind::kLarge;
  segment.is_expandable = of.in_pages;
  segment.owner_private_pool_id = state.pools.nameOf(of.pool);
  return segment;
}

// Invariants of PyTorch's struct: the blocks' sizes sum to total_size; of those that are allocated
// to allocated_size, of those that are active to active_size. `bytes`: of the block that count.
void addBlock(const DeviceState& state, const cistern::SnapshotBlock& block, std::uint64_t bytes,
              theirs::SegmentInfo& segment) {
  theirs::BlockInfo info;
  info.size = std::size_t(bytes);
  info.requested_size = std::size_t(std::min(block.requested, bytes));
  info.allocated = block.use == cistern::BlockUse::kAllocated;
  info.active = block.use != cistern::BlockUse::kFree;
  if (info.allocated)
    info.context_when_allocated = state.history.contextOf(cistern::toPointer(block.address));
  segment.total_size += info.size;
  if (info.active) segment.requested_size += info.requested_size;
  if (info.allocated) segment.allocated_size += info.size;
  if (info.active) segment.active_size += info.size;
  segment.blocks.push_back(std::move(info));
}

// `host`: what lies in the host's memory counts too.
void addSegment(const DeviceState& state, const cistern::SnapshotSegment& from, bool host,
                std::vector<theirs::SegmentInfo>& out) {
  bool open = false;
  for (const cistern::SnapshotBlock& block : from.blocks) {
    const std::uint64_t bytes = host ? block.bytes : block.bytes - block.on_host;
    const bool away = block.use == cistern::BlockUse::kAsleep || bytes == 0;
    if (block.use == cistern::BlockUse::kUnmapped || away) {
      open = false;
      continue;
    }
    if (!open) out.push_back(emptySegment(state, from, std::size_t(block.address)));
    open = true;
    addBlock(state, block, bytes, out.back());
  }
}

}  // namespace

void addSegments(DeviceState& state, TorchPoolId pool, std::vector<theirs::SegmentInfo>& out) {
  const cistern::Snapshot snapshot = state.allocator.snapshot();
  for (const cistern::SnapshotSegment& segment : snapshot.segments) {
    // A picture of the device's memory adds up to what is reserved there.
    const bool all = pool == TorchPoolId{0, 0};
    if (all || state.pools.nameOf(segment.pool) == pool) addSegment(state, segment, !all, out);
  }
}

}  // namespace cistern_torch
