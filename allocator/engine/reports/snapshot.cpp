// Every segment and block, as a picture and as JSON.
#include "allocator/engine/reports/snapshot.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "allocator/base/text.hpp"
#include "allocator/engine/core/all_heaps.hpp"

namespace cistern {
namespace {

// A block that another thread has freed, and that its cache has not taken yet, is pending.
BlockUse useOf(const Block& block) {
  if (block.isFree()) return BlockUse::kFree;
  if (block.isHole()) return BlockUse::kUnmapped;
  const bool kept = block.state() == BlockState::kAllocated && ownership::heldByProgram(block);
  return kept ? BlockUse::kAllocated : BlockUse::kPending;
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
                          isRange(segment),
                          {}};
  for (const Block* block = segment.first; block != nullptr; block = block->next)
    picture.blocks.push_back(pictureOf(heap, *block));
  return picture;
}

}  // namespace

Snapshot snapshotOf(Engine& engine) {
  Snapshot snapshot;
  snapshot.device = engine.deviceName();
  withAllHeaps(engine, [&](const std::vector<Heap*>& heaps) {
    for (Heap* heap : heaps) {
      heap->mutex().assertHeld();
      if (heap->stream() == Heap::kNobodys) continue;  // addresses alone, without memory
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

// Addresses and streams are text: readers that know numbers as doubles would round them.
std::string snapshotJson(const Snapshot& snapshot) {
  std::string text =
      fmt::format(R"({{"version":1,"device":{},"segments":[)", quotedJson(snapshot.device));
  const auto end = std::back_inserter(text);
  for (const SnapshotSegment& of : snapshot.segments) {
    fmt::format_to(end, R"({}{{"address":"{:#x}","size":{},"kind":"{}","in_pages":{},)",
                   &of == &snapshot.segments.front() ? "\n" : ",\n", of.address, of.bytes,
                   of.kind == SizeKind::kSmall ? "small" : "large", of.in_pages);
    fmt::format_to(end, R"("pool":[{},{}],"stream":"{:#x}","blocks":[)", of.pool.uuid, of.pool.uid,
                   of.stream.raw);
    for (const SnapshotBlock& block : of.blocks) {
      fmt::format_to(
          end, R"({}{{"address":"{:#x}","size":{},"requested":{},"state":"{}","stream":"{:#x}"}})",
          &block == &of.blocks.front() ? "\n" : ",\n", block.address, block.bytes, block.requested,
          blockUseName(block.use), block.stream.raw);
    }
    text += "]}";
  }
  return text += "]}\n";
}

}  // namespace cistern
