// Questions about a pointer, wrong frees, and the report of an OutOfMemory.
#include <algorithm>

#include <fmt/format.h>

#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {

void CachingAllocator::recordStream(void* pointer, Stream stream) {
  if (pointer == nullptr) return;
  if (heaps_.find(stream) == nullptr) {
    requireLive(stream);
    streams_.meet(stream);
  }
  const auto [segment, heap] = locate(toAddress(pointer));
  if (heap != nullptr) {
    const MutexLock lock(heap->mutex());
    if (Block* block = heap->find(*segment, toAddress(pointer))) {
      if (noteUse(*heap, *block, stream)) return;
    }
  }
  reportMisuse("recordStream", toAddress(pointer));
}

// A block that others use is the heap's to look after. False when somebody frees it meanwhile.
bool CachingAllocator::noteUse(const Heap& heap, Block& block, Stream stream) {
  if (stream == heap.streamOf(block)) return true;
  const std::uint32_t holder = holding::load(block);
  if (holding::isOwned(holder)) {
    if (holding::whereIs(holder) != holding::Where::kHeld) return false;
    if (!holding::change(block, holder, holding::moved(holder, holding::Where::kReturned)))
      return false;
    holding::leaveToHeap(block, heap.stream());
  }
  auto* uses = static_cast<StreamUses*>(block.use.uses);
  if (uses == nullptr) block.use.uses = uses = new StreamUses;
  uses->note(stream);
  return true;
}

std::size_t CachingAllocator::blockSize(void* pointer) const {
  return inspect("blockSize", toAddress(pointer)).bytes;
}

BaseAllocation CachingAllocator::getBaseAllocation(void* pointer) const {
  return inspect("getBaseAllocation", toAddress(pointer)).around;
}

CachingAllocator::Inspected CachingAllocator::inspect(const char* verb, Address address) const {
  const auto [segment, heap] = locate(address);
  if (heap != nullptr) {
    const MutexLock lock(heap->mutex());
    if (const Block* block = heap->find(*segment, address)) {
      return {block->bytes(), {toPointer(segment->device_base), segment->bytes}};
    }
  }
  throw InvalidArgument(describeMisuse(verb, address).text());
}

Misuse CachingAllocator::describeMisuse(const char* verb, Address address) const {
  Misuse misuse;
  misuse.verb = verb;
  misuse.pointer = address;
  const auto [segment, heap] = locate(address);
  if (heap == nullptr) return misuse;
  const MutexLock lock(heap->mutex());
  const HeldCaches held_still(
      *heap);  // what they keep is free, and the heap remembers whose it was
  if (!heap->owns(*segment, address)) return misuse;
  const Block* block = Layout::covering(*segment, segment->placeOf(address));
  misuse.block = deviceAddress(*block);
  misuse.block_bytes = block->bytes();
  misuse.stream = heap->stream();
  if (block->isHole() && heap->frees.find(address) == nullptr) return misuse;
  const bool held = block->state() == BlockState::kAllocated;
  misuse.kind = held ? MisuseKind::kInteriorPointer : MisuseKind::kDoubleFree;
  if (const FreeLog::Entry* freed = held ? nullptr : heap->frees.find(address)) {
    misuse.freed_by = freed->caller;
    misuse.freed_on_thread = freed->thread;
  }
  return misuse;
}

void CachingAllocator::reportMisuse(const char* verb, Address address) const noexcept {
  num_misuses_.fetch_add(1, std::memory_order_relaxed);
  hooks_.misuse(describeMisuse(verb, address));
}

namespace {

constexpr std::size_t kHoldersShown = 8;

void noteHolders(Heap& heap, SizeKind kind, std::vector<HolderReport>& holders) CISTERN_NO_TSA {
  for (const Segment* s = heap.layout(kind).segments(); s; s = s->next) {
    for (const Block* b = s->first; b; b = b->next) {
      if (b->state() != BlockState::kAllocated) continue;
      holders.push_back({deviceAddress(*b), b->bytes(), heap.streamOf(*b)});
    }
  }
}

void keepLargest(std::vector<HolderReport>& holders) {
  std::sort(holders.begin(), holders.end(), [](const HolderReport& a, const HolderReport& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.address < b.address;
  });
  if (holders.size() > kHoldersShown) holders.resize(kHoldersShown);
}

HeapReport reportOf(Heap& heap, std::vector<HolderReport>& holders) {
  const MutexLock lock(heap.mutex());
  const HeldCaches held_still(heap);
  const StatArray small = heap.usage(SizeKind::kSmall), large = heap.usage(SizeKind::kLarge);
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
  for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
    report.largest_free =
        std::max(report.largest_free, largestFree(heap.layout(kind).freeBlocks()));
    noteHolders(heap, kind, holders);
  }
  return report;
}

}  // namespace

OutOfMemoryReport CachingAllocator::describeShortage(const Request& request) const {
  OutOfMemoryReport report;
  report.device =
      fmt::format("{} device {} ({})", device_.backend(), device_.ordinal(), device_.name());
  report.requested = request.bytes;
  report.rounded = std::max(request.rounded(), request.bytes);
  report.segment = std::max(leastGrowth(request), report.rounded);
  report.pool = request.pool->id();
  report.stream = request.stream;
  report.limit = limit();
  report.device_total = device_total_;
  for (Heap* heap : heaps_.all()) {
    if (heap->pool().stage() == Pool::Stage::kNowhere) continue;
    report.heaps.push_back(reportOf(*heap, report.holders));
    report.reserved += report.heaps.back().reserved;
    report.allocated += report.heaps.back().allocated;
    keepLargest(report.holders);
  }
  std::sort(report.heaps.begin(), report.heaps.end(),
            [](const HeapReport& a, const HeapReport& b) { return a.reserved > b.reserved; });
  if (const Result<MemoryInfo> info = device_.memoryInfo())
    report.device_free = info.value().free_bytes;
  report.device_error = pages_ ? pages_->lastDeviceError() : segment_backing_.lastError();
  return report;
}

void CachingAllocator::throwOutOfMemory(const Request& request) {
  num_ooms_.fetch_add(1, std::memory_order_relaxed);
  const OutOfMemoryReport report = describeShortage(request);
  hooks_.outOfMemory(report);
  throw OutOfMemory(report);
}

}  // namespace cistern
