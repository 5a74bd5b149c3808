#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/text.hpp"
#include "allocator/engine/statistics/accounting.hpp"

namespace cistern {
namespace {

BlockUse useOf(const Block& block) {
  switch (block.state()) {
    case BlockState::kAllocated:  // else another thread has freed it, and its cache has it not yet
      return ownership::heldByProgram(block) ? BlockUse::kAllocated : BlockUse::kPending;
    case BlockState::kPending:
      return BlockUse::kPending;
    case BlockState::kHole:
      return BlockUse::kUnmapped;
    default:
      return BlockUse::kFree;
  }
}

SnapshotBlock pictureOf(const Heap& heap, const Block& block) {
  const BlockUse use = useOf(block);
  const bool used = use == BlockUse::kAllocated || use == BlockUse::kPending;
  return {deviceAddress(block), block.bytes(), used ? ownership::requested(block) : 0,
          used ? heap.streamOf(block) : heap.stream(), use};
}

SnapshotSegment pictureOf(const Heap& heap, const HeapSegment& segment) {
  SnapshotSegment picture{segment.device_base,
                          segment.bytes,
                          heap.pool().id(),
                          heap.stream(),
                          segment.kind,
                          heap.onPages(),
                          {}};
  for (const Block* block = segment.first; block != nullptr; block = block->next)
    picture.blocks.push_back(pictureOf(heap, *block));
  return picture;
}

// Addresses and streams are text: readers that know numbers as doubles would round them.
std::string json(const SnapshotBlock& block) {
  return fmt::format(
      R"({{"address":"{:#x}","size":{},"requested":{},"state":"{}","stream":"{:#x}"}})",
      block.address, block.bytes, block.requested, blockUseName(block.use), block.stream.raw);
}

}  // namespace

Snapshot snapshotOf(Engine& engine) {
  Snapshot snapshot;
  snapshot.device = engine.deviceName();
  withAllHeaps(engine, [&](const std::vector<Heap*>& heaps) {
    for (Heap* heap : heaps) {
      heap->mutex().assertHeld();
      forEachSegment(*heap, [&](const HeapSegment& segment) {
        snapshot.segments.push_back(pictureOf(*heap, segment));
      });
    }
  });
  std::ranges::sort(snapshot.segments, {}, &SnapshotSegment::address);
  return snapshot;
}

const char* blockUseName(BlockUse use) {
  static constexpr const char* kNames[] = {"allocated", "pending", "free", "unmapped"};
  return kNames[std::size_t(use)];
}

std::string snapshotJson(const Snapshot& snapshot) {
  std::string out =
      fmt::format("{{\"version\":1,\"device\":{},\"segments\":[", quotedJson(snapshot.device));
  const char* between = "\n";
  for (const SnapshotSegment& segment : snapshot.segments) {
    out +=
        fmt::format(R"({}{{"address":"{:#x}","size":{},"kind":"{}","in_pages":{},"pool":[{},{}],)"
                    R"("stream":"{:#x}","blocks":[)",
                    between, segment.address, segment.bytes,
                    segment.kind == SizeKind::kSmall ? "small" : "large", segment.in_pages,
                    segment.pool.uuid, segment.pool.uid, segment.stream.raw);
    between = ",\n";
    const char* comma = "\n";
    for (const SnapshotBlock& block : segment.blocks) {
      out += comma + json(block);
      comma = ",\n";
    }
    out += "]}";
  }
  return out += "]}\n";
}

}  // namespace cistern
