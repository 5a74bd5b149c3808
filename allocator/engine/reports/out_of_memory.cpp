#include "allocator/engine/reports/out_of_memory.hpp"

#include <algorithm>
#include <functional>
#include <mutex>

#include "allocator/engine/reports/dumps.hpp"
#include "allocator/engine/reports/snapshot.hpp"

namespace cistern {
namespace {

constexpr std::size_t kHoldersShown = 8;

HeapReport& heapOf(OutOfMemoryReport& report, const SnapshotSegment& segment) {
  for (HeapReport& heap : report.heaps) {
    if (heap.pool == segment.pool && heap.stream == segment.stream) return heap;
  }
  HeapReport& heap = report.heaps.emplace_back(HeapReport{segment.pool, segment.stream});
  heap.location = segment.location;
  return heap;
}

void add(OutOfMemoryReport& report, const SnapshotSegment& segment) {
  HeapReport& heap = heapOf(report, segment);
  for (const SnapshotBlock& block : segment.blocks) {
    if (block.use == BlockUse::kUnmapped || block.use == BlockUse::kAsleep) continue;
    heap.reserved += block.bytes;
    if (block.use == BlockUse::kAllocated) {
      heap.allocated += block.bytes;
      if (segment.location != report.location) continue;  // its free would not help
      report.holders.push_back({block.address, block.bytes, block.stream});
    } else if (block.use == BlockUse::kPending) {
      heap.pending += block.bytes;
    } else {
      heap.free += block.bytes;
      heap.largest_free = std::max(heap.largest_free, block.bytes);
    }
  }
}

// Memory in another pool, or on another stream, is passed over whatever its size.
WhyUnused whyUnused(const Engine& engine, Heap& heap, const Block& block, const Request& request)
    CISTERN_REQUIRES(heap.mutex()) {
  const Completion& known = heap.completion();
  if (&heap.pool() != request.pool)
    return engine.isHeld(block) ? WhyUnused::kHeldInPlace : WhyUnused::kOtherPool;
  if (heap.stream() != request.stream) {
    if (!engine.options.reusesAcrossStreams()) return WhyUnused::kOtherStream;
    if (!known.complete(known.epochOf(block.epoch))) return WhyUnused::kIncomplete;
  }
  if (block.granules < request.granules) return WhyUnused::kTooSmall;
  const bool serves = heap.layout(segmentOf(block).kind).serves(block, request.granules);
  return serves ? WhyUnused::kFreedSince : WhyUnused::kKeptWhole;
}

void addFree(OutOfMemoryReport& report, WhyUnused why, std::uint64_t bytes) {
  auto part = std::ranges::find(report.unused, why, &UnusedMemory::why);
  if (part == report.unused.end()) part = report.unused.insert(part, {why});
  part->bytes += bytes;
  part->largest = std::max(part->largest, bytes);
}

void addFreeParts(Engine& engine, const Request& request, OutOfMemoryReport& report) {
  for (Heap* heap : engine.heaps.with(pagesOf(request))) {
    const std::unique_lock still = engine.holdStill(heap->onPages());
    const MutexLock lock(heap->mutex());
    forEachBlock(*heap, [&](const Block& block) {
      heap->mutex().assertHeld();
      if (block.isFree()) addFree(report, whyUnused(engine, *heap, block, request), block.bytes());
    });
  }
  std::ranges::sort(report.unused, std::greater(), &UnusedMemory::bytes);
}

}  // namespace

std::uint64_t deviceFree(Engine& engine) {
  const Result<MemoryInfo> info = engine.device.memoryInfo();
  return info ? info.value().free_bytes : 0;
}

namespace {

OutOfMemoryReport describe(Engine& engine, const Request& request) {
  OutOfMemoryReport report;
  report.device = engine.deviceName();
  report.requested = request.bytes;
  report.rounded = std::max(request.rounded(), request.bytes);
  report.segment = std::max(engine.leastGrowth(request), report.rounded);
  report.pool = request.pool->id();
  report.stream = request.stream;
  report.captured = request.capture != nullptr;
  report.limit = engine.limit.limit();
  report.location = request.pool->location();
  report.host_left = engine.device.hostPageBytesLeft();
  for (const SnapshotSegment& segment : snapshotOf(engine).segments) add(report, segment);
  std::erase_if(report.heaps, [](const HeapReport& heap) { return heap.reserved == 0; });
  for (const HeapReport& heap : report.heaps) {
    const bool host = heap.location == Location::kHost;
    (host ? report.host_reserved : report.reserved) += heap.reserved;
    if (!host) report.allocated += heap.allocated;
  }
  report.overflow_limit = engine.overflow.limit();
  report.overflow_reserved = engine.overflow.reserved();
  if (report.overflow_reserved > 0) {  // its heaps have memory of both kinds
    report.reserved = engine.limit.reserved();
    report.host_reserved = engine.hostPageBytes();
  }
  addFreeParts(engine, request, report);
  std::ranges::sort(report.heaps, std::greater(), &HeapReport::reserved);
  std::ranges::stable_sort(report.holders, std::greater(), &HolderReport::bytes);
  if (report.holders.size() > kHoldersShown) report.holders.resize(kHoldersShown);
  report.device_total = engine.device_total;
  report.device_error = engine.lastError();
  report.device_free = deviceFree(engine);
  return report;
}

}  // namespace

// If there would be room for the request, that room is in pieces: one as large as the request is
// missing.
MemoryShortage shortageOf(Engine& engine, const Request& request, std::uint32_t attempt) {
  const PageKind kind = pagesOf(request);
  const bool host = kind != PageKind::kDevice;
  const std::uint64_t free = freeBytes(engine.heaps.with(kind)), bytes = request.rounded();
  const std::uint64_t need = bytes + (host ? 0 : engine.limit.over());
  const std::uint64_t left =
      host ? engine.leftFor(kind) : std::min(engine.limit.left(), deviceFree(engine));
  // Any number of bytes may be left.
  const std::uint64_t lacking = need - std::min(left, need);
  const std::uint64_t missing = free < lacking ? lacking - free : bytes;
  return {request.bytes, missing, attempt, request.pool->id(), request.stream};
}

void throwOutOfMemory(Engine& engine, const Request& request) {
  engine.out_of_memories.fetch_add(1, std::memory_order_relaxed);
  OutOfMemoryReport report = describe(engine, request);
  noteFailure(engine, report);
  engine.hooks.out_of_memory(report);
  throw OutOfMemory(report);
}

}  // namespace cistern
