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
  setOrder(segment, of.number);
  return segment;
}

using Part = BlockBacking::Range;

// The parts of a block that are memory of the device. The history knows which, if it was told of
// all. Otherwise they count as its beginning.
std::vector<Part> partsOnDevice(const DeviceState& state, const cistern::SnapshotBlock& block) {
  const Part whole{block.address, block.address + block.bytes};
  const std::uint64_t bytes = block.bytes - block.away - block.on_host;
  if (bytes == block.bytes) return {whole};
  if (bytes == 0) return {};
  std::vector<Part> parts = state.history.partsOnDevice(whole);
  std::uint64_t known = 0;
  for (const Part& part : parts) known += part.end - part.begin;
  if (known != bytes) return {{block.address, block.address + bytes}};
  return parts;
}

// Invariants of PyTorch's struct: the blocks' sizes sum to total_size; of those that are allocated
// to allocated_size, of those that are active to active_size. A part of a block is a block that
// nobody has: PyTorch's viewer looks for a segment around the whole of it.
void addBlock(const DeviceState& state, const cistern::SnapshotBlock& block, const Part& part,
              theirs::SegmentInfo& segment) {
  theirs::BlockInfo info;
  info.size = std::size_t(part.end - part.begin);
  const bool whole = info.size == block.bytes;
  info.requested_size = whole ? std::size_t(block.requested) : 0;
  info.allocated = whole && block.use == cistern::BlockUse::kAllocated;
  info.active = info.allocated || (whole && block.use == cistern::BlockUse::kPending);
  if (info.allocated)
    info.context_when_allocated = state.history.contextOf(cistern::toPointer(block.address));
  segment.total_size += info.size;
  if (info.active) segment.requested_size += info.requested_size;
  if (info.allocated) segment.allocated_size += info.size;
  if (info.active) segment.active_size += info.size;
  segment.blocks.push_back(std::move(info));
}

void addSegment(const DeviceState& state, const cistern::SnapshotSegment& from,
                std::vector<theirs::SegmentInfo>& out) {
  std::uint64_t end = 0;  // of the segment so far
  for (const cistern::SnapshotBlock& block : from.blocks) {
    for (const Part& part : partsOnDevice(state, block)) {
      if (part.begin != end) out.push_back(emptySegment(state, from, std::size_t(part.begin)));
      end = part.end;
      addBlock(state, block, part, out.back());
    }
  }
}

}  // namespace

void addSegments(DeviceState& state, TorchPoolId pool, std::vector<theirs::SegmentInfo>& out) {
  const cistern::Snapshot snapshot = state.allocator.snapshot();
  for (const cistern::SnapshotSegment& segment : snapshot.segments) {
    const bool all = pool == TorchPoolId{0, 0};
    if (all || state.pools.nameOf(segment.pool) == pool) addSegment(state, segment, out);
  }
}

}  // namespace cistern_torch
