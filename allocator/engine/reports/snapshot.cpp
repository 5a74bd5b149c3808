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
  SnapshotBlock picture;
  picture.address = deviceAddress(block);
  picture.bytes = block.bytes();
  picture.use = useOf(block);
  picture.stream = heap.stream();
  if (picture.use == BlockUse::kAllocated || picture.use == BlockUse::kPending) {
    picture.requested = ownership::requested(block);
    picture.stream = heap.streamOf(block);
  }
  return picture;
}

SnapshotSegment pictureOf(const Heap& heap, const HeapSegment& segment) {
  SnapshotSegment picture;
  picture.address = segment.device_base;
  picture.bytes = segment.bytes;
  picture.pool = heap.pool().id();
  picture.stream = heap.stream();
  picture.kind = segment.kind;
  picture.in_pages = heap.onPages();
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
