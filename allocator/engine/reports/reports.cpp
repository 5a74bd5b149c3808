#include "allocator/engine/reports/reports.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "allocator/engine/cache/held_caches.hpp"

namespace cistern {

Reports::Inspected Reports::inspect(const char* verb, Address address) const {
  const auto [segment, heap] = locate(segments_, address);
  if (heap != nullptr) {
    const MutexLock lock(heap->mutex());
    if (const Block* block = heap->find(*segment, address)) {
      return {block->bytes(), {toPointer(segment->device_base), segment->bytes}};
    }
  }
  throw InvalidArgument(describe(verb, address).text());
}

bool Reports::covers(Address address) const {
  const auto [segment, heap] = locate(segments_, address);
  if (heap == nullptr) return false;
  const MutexLock lock(heap->mutex());
  return segment->covers(address, *heap);
}

Misuse Reports::describe(const char* verb, Address address) const {
  Misuse misuse;
  misuse.verb = verb;
  misuse.pointer = address;
  const auto [segment, heap] = locate(segments_, address);
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

void Reports::misuse(const char* verb, Address address) const noexcept {
  misuses_.fetch_add(1, std::memory_order_relaxed);
  hooks_.misuse(describe(verb, address));
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

}  // namespace

OutOfMemoryReport Reports::describe(const Request& request, std::uint64_t segment) const {
  OutOfMemoryReport report;
  report.device =
      fmt::format("{} device {} ({})", device_.backend(), device_.ordinal(), device_.name());
  report.requested = request.bytes;
  report.rounded = std::max(request.rounded(), request.bytes);
  report.segment = std::max(segment, report.rounded);
  report.pool = request.pool->id();
  report.stream = request.stream;
  report.limit = limit_.limit();
  for (Heap* heap : heaps_.all()) {
    if (heap->pool().stage() == Pool::Stage::kNowhere) continue;
    report.heaps.push_back(reportOf(*heap, report.holders));
    report.reserved += report.heaps.back().reserved;
    report.allocated += report.heaps.back().allocated;
    keepLargest(report.holders);
  }
  std::sort(report.heaps.begin(), report.heaps.end(),
            [](const HeapReport& a, const HeapReport& b) { return a.reserved > b.reserved; });
  return report;
}

void Reports::outOfMemory(const Request& request, std::uint64_t segment, std::uint64_t device_total,
                          std::string device_error) {
  out_of_memories_.fetch_add(1, std::memory_order_relaxed);
  OutOfMemoryReport report = describe(request, segment);
  report.device_total = device_total;
  report.device_error = std::move(device_error);
  if (const Result<MemoryInfo> info = device_.memoryInfo())
    report.device_free = info.value().free_bytes;
  hooks_.outOfMemory(report);
  throw OutOfMemory(report);
}

}  // namespace cistern
