#include "allocator/engine/reports/reports.hpp"

#include <algorithm>

#include "allocator/engine/cache/held_caches.hpp"

namespace cistern {
namespace {

Misuse describe(const Engine& engine, const char* verb, Address address) {
  Misuse misuse;
  misuse.verb = verb;
  misuse.pointer = address;
  const auto [segment, heap] = engine.locate(address);
  if (heap == nullptr) return misuse;
  const MutexLock lock(heap->mutex());
  const HeldCaches held_still(
      *heap);  // what they keep is free, and the heap remembers whose it was
  if (!segment->covers(address, *heap)) return misuse;
  const Block* block = segment->covering(segment->placeOf(address));
  misuse.block = deviceAddress(*block);
  misuse.block_bytes = block->bytes();
  misuse.stream = heap->stream();
  if (block->isHole() && heap->frees().find(address) == nullptr) return misuse;
  const bool held = block->state() == BlockState::kAllocated;
  misuse.kind = held ? MisuseKind::kInteriorPointer : MisuseKind::kDoubleFree;
  if (const FreeLog::Entry* freed = held ? nullptr : heap->frees().find(address)) {
    misuse.freed_by = freed->caller;
    misuse.freed_on_thread = freed->thread;
  }
  return misuse;
}

}  // namespace

Inspected inspect(const Engine& engine, const char* verb, Address address) {
  const auto [segment, heap] = engine.locate(address);
  if (heap != nullptr) {
    const MutexLock lock(heap->mutex());
    if (const Block* block = heap->find(*segment, address)) {
      return {block->bytes(), {toPointer(segment->device_base), segment->bytes}};
    }
  }
  throw InvalidArgument(describe(engine, verb, address).text());
}

bool covers(const Engine& engine, Address address) {
  const auto [segment, heap] = engine.locate(address);
  if (heap == nullptr) return false;
  const MutexLock lock(heap->mutex());
  return segment->covers(address, *heap);
}

void reportMisuse(Engine& engine, const char* verb, Address address) noexcept {
  engine.misuses.fetch_add(1, std::memory_order_relaxed);
  engine.hooks.misuse(describe(engine, verb, address));
}

namespace {

constexpr std::size_t kHoldersShown = 8;

void keepLargest(std::vector<HolderReport>& holders) {
  std::sort(holders.begin(), holders.end(), [](const HolderReport& a, const HolderReport& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.address < b.address;
  });
  if (holders.size() > kHoldersShown) holders.resize(kHoldersShown);
}

HeapReport reportOf(Heap& heap, std::vector<HolderReport>& holders) {
  const MutexLock lock(heap.mutex());
  const HeldCaches held_still(heap);
  const HeapCounts& counts = heap.counts();
  const StatArray small = counts.usage(SizeKind::kSmall), large = counts.usage(SizeKind::kLarge);
  const auto bytes = [&](Stat stat) {
    return std::uint64_t(small[std::size_t(stat)] + large[std::size_t(stat)]);
  };
  HeapReport report;
  report.pool = heap.pool().id();
  report.stream = heap.stream();
  report.reserved = bytes(Stat::kReservedBytes);
  report.allocated = bytes(Stat::kAllocatedBytes);
  report.pending = bytes(Stat::kActiveBytes) - report.allocated;
  report.free = report.reserved - bytes(Stat::kActiveBytes);
  for (SizeKind kind : kSizeKinds) {
    report.largest_free =
        std::max(report.largest_free, largestFree(heap.layout(kind).freeBlocks()));
  }
  forEachBlock(heap, [&](const Block& block) {
    if (block.state() == BlockState::kAllocated)
      holders.push_back({deviceAddress(block), block.bytes(), heap.streamOf(block)});
  });
  return report;
}

OutOfMemoryReport describe(const Engine& engine, const Request& request) {
  OutOfMemoryReport report;
  report.device = engine.deviceName();
  report.requested = request.bytes;
  report.rounded = std::max(request.rounded(), request.bytes);
  report.segment = std::max(request.pool->backing().leastGrowth(request), report.rounded);
  report.pool = request.pool->id();
  report.stream = request.stream;
  report.limit = engine.limit.limit();
  for (Heap* heap : engine.heaps.all()) {
    if (heap->pool().stage() == Pool::Stage::kNowhere) continue;
    report.heaps.push_back(reportOf(*heap, report.holders));
    report.reserved += report.heaps.back().reserved;
    report.allocated += report.heaps.back().allocated;
    keepLargest(report.holders);
  }
  std::sort(report.heaps.begin(), report.heaps.end(),
            [](const HeapReport& a, const HeapReport& b) { return a.reserved > b.reserved; });
  report.device_total = engine.device_total;
  report.device_error = engine.backing().lastError();
  if (const Result<MemoryInfo> info = engine.device.memoryInfo())
    report.device_free = info.value().free_bytes;
  return report;
}

}  // namespace

void throwOutOfMemory(Engine& engine, const Request& request) {
  engine.out_of_memories.fetch_add(1, std::memory_order_relaxed);
  const OutOfMemoryReport report = describe(engine, request);
  engine.hooks.out_of_memory(report);
  throw OutOfMemory(report);
}

}  // namespace cistern
