#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <tuple>

#include "allocator/base/report_text.hpp"
#include "allocator/engine/cache/thread_cache.hpp"
#include "allocator/engine/errors/engine_errors.hpp"

namespace cistern {

// A cached block is free. One that another thread has freed, and that its cache has not taken yet,
// is pending.
static BlockUse useOf(const Block& block) {
  if (block.isFree()) return BlockUse::kFree;
  if (block.isHole()) return BlockUse::kUnmapped;
  if (block.state() != BlockState::kAllocated || ownership::heldByProgram(block))
    return block.state() == BlockState::kAllocated ? BlockUse::kAllocated : BlockUse::kPending;
  const bool cached = ownership::whereIs(ownership::load(block)) == ownership::Where::kCached;
  return cached ? BlockUse::kFree : BlockUse::kPending;
}

// A block may be freed while its pool sleeps.
SnapshotBlock pictureOf(const Engine& engine, const Heap& heap, const Block& block, bool sleeps,
                        bool on_host) {
  const auto isThere = [](const pages::Mapping& mapping) { return mapping.isThere(); };
  BlockUse use = useOf(block);
  std::uint64_t away = use == BlockUse::kUnmapped ? block.bytes() : 0;
  if (sleeps) away = block.bytes() - pages::bytesIn(block, isThere);
  if (use == BlockUse::kAllocated && away > 0) use = BlockUse::kAsleep;
  const bool used = use != BlockUse::kFree && use != BlockUse::kUnmapped;
  std::uint64_t held_on_host = 0;
  if (on_host && (sleeps || !block.isHole())) {
    engine.pages.mutex().assertHeld();
    held_on_host = engine.pages.hostBytesIn(block);
  }
  return {deviceAddress(block),
          block.bytes(),
          used ? ownership::requested(block) : 0,
          used ? heap.streamOf(block) : heap.stream(),
          use,
          held_on_host,
          away};
}

namespace {

constexpr std::size_t kHoldersShown = 8;

/// Where in the report each heap is: there may be thousands. A heap of overflow has memory of both
/// places: what lies on the device is told with the stream's other memory there.
using HeapNumbers = std::map<std::tuple<MempoolId_t, Stream, Location>, std::size_t>;

// The part of a block that lies in one of the places. What lies elsewhere would not help.
void add(OutOfMemoryReport& report, HeapNumbers& numbers, const Heap& heap,
         const SnapshotBlock& block, Location at, std::uint64_t bytes) {
  if (bytes == 0) return;
  const MempoolId_t pool = heap.pool().id();
  const auto [known, is_new] = numbers.try_emplace({pool, heap.stream(), at}, report.heaps.size());
  if (is_new) report.heaps.emplace_back(HeapReport{pool, heap.stream()}).location = at;
  HeapReport& to = report.heaps[known->second];
  to.reserved += bytes;
  if (block.use == BlockUse::kAllocated || block.use == BlockUse::kAsleep) {
    to.allocated += bytes;
    if (at == report.location) report.holders.push_back({block.address, bytes, block.stream});
  } else if (block.use == BlockUse::kPending) {
    to.pending += bytes;
  } else {
    to.free += bytes;
    to.largest_free = std::max(to.largest_free, bytes);
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
  if (block.granules < request.enough()) return WhyUnused::kTooSmall;
  const bool serves = heap.layout(segmentOf(block).kind).serves(block, request.granules);
  return serves ? WhyUnused::kFreedSince : WhyUnused::kKeptWhole;
}

void addFree(OutOfMemoryReport& report, WhyUnused why, std::uint64_t bytes) {
  auto part = std::ranges::find(report.unused, why, &UnusedMemory::why);
  if (part == report.unused.end()) part = report.unused.insert(part, {why});
  part->bytes += bytes;
  part->largest = std::max(part->largest, bytes);
}

void addHeap(Engine& engine, Heap& heap, const Request& request, OutOfMemoryReport& report,
             HeapNumbers& numbers) {
  const MutexLock still(engine.pages.mutex());
  const MutexLock lock(heap.mutex());
  if (heap.stream() == Heap::kNobodys) return;  // addresses alone, without memory
  const HeldCaches held_still(heap);
  const bool on_host = !isOfDevice(heap.memory());
  const bool could_serve = shareRoom(heap.memory(), memoryFor(request));
  forEachBlock(heap, [&](const Block& block) {
    heap.mutex().assertHeld();
    const SnapshotBlock picture = pictureOf(engine, heap, block, heap.asleep(), on_host);
    const std::uint64_t here = picture.bytes - picture.away - picture.on_host;
    add(report, numbers, heap, picture, Location::kDevice, here);
    add(report, numbers, heap, picture, Location::kHost, picture.on_host);
    if (could_serve && block.isFree())
      addFree(report, whyUnused(engine, heap, block, request), block.bytes());
  });
}

void addHeaps(Engine& engine, const Request& request, OutOfMemoryReport& report) {
  HeapNumbers numbers;
  for (Heap* heap : engine.heaps.all()) addHeap(engine, *heap, request, report, numbers);
  for (const HeapReport& heap : report.heaps)
    report.allocated += heap.location == Location::kDevice ? heap.allocated : 0;
  std::ranges::sort(report.unused, std::greater(), &UnusedMemory::bytes);
  std::ranges::sort(report.heaps, std::greater(), &HeapReport::reserved);
  std::ranges::stable_sort(report.holders, std::greater(), &HolderReport::bytes);
  if (report.holders.size() > kHoldersShown) report.holders.resize(kHoldersShown);
}

// A capture gives nothing back: what lies free is counted as if it did not. A request that is
// larger than the device is refused before it waits for queued work. A block that may lie in both
// places lies beside the stream's heap, and among other blocks there. It needs as little of the
// device as it does in one of the two.
void addLack(Engine& engine, const Request& request, OutOfMemoryReport& report) {
  report.segment = std::max(engine.leastGrowth(request), report.rounded);
  if (request.capture != nullptr || request.bytes > kLargestRequest) return;
  const Pool& pool = *request.pool;
  Heap* const own = engine.heaps.find(pool, request.stream);
  const MemoryKind kind = memoryFor(request);
  const bool at_once = request.rounded() > engine.mostFor(pool);
  const std::vector<Heap*> overflow = engine.heaps.with(MemoryKind::kOverflow);
  std::vector<Heap*> heaps = engine.heaps.with(kind);
  if (isOfDevice(kind)) heaps.insert(heaps.end(), overflow.begin(), overflow.end());
  const PageBacking::Lack lack = engine.pages.lackOf(own, request, heaps, kind, at_once);
  report.returnable = lack.free + engine.segments.releasableBytes(heaps);
  if (!pool.onPages()) return;
  report.segment = lack.growth;
  if (!isOfDevice(kind) || !mayLieInBoth(report)) return;
  Heap* const beside = own != nullptr ? HeapTable::beside(*own) : nullptr;
  const PageBacking::Lack both =
      engine.pages.lackOf(beside, request, heaps, MemoryKind::kOverflow, at_once);
  const std::uint64_t there = both.free - lack.free;
  report.segment =
      std::min(both.growth - std::min(there, both.growth), lack.growth + roomBeside(report));
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
  report.alignment = request.alignment();
  report.pool = request.pool->id();
  report.pool_limit = request.pool->limit;
  if (report.pool_limit != UINT64_MAX) report.pool_in_use = request.pool->busyBytes();
  report.stream = request.stream;
  report.captured = request.capture != nullptr;
  report.limit = engine.limit.limit();
  report.location = request.pool->location();
  report.host_left = engine.device.hostPageBytesLeft();
  addHeaps(engine, request, report);
  report.overflow_limit = engine.overflow.limit();
  report.overflow_reserved = engine.overflow.reserved();
  report.reserved = engine.limit.reserved();
  report.host_reserved = engine.hostPageBytes();
  addLack(engine, request, report);
  report.device_total = engine.device_total;
  report.device_error = engine.answers.error();
  report.device_free = deviceFree(engine);
  return report;
}

}  // namespace

// If there would be room for the request, that room is in pieces: one as large as the request is
// missing.
MemoryShortage shortageOf(Engine& engine, const Request& request, std::uint32_t attempt) {
  const MemoryKind kind = memoryFor(request);
  const bool host = !isOfDevice(kind);
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
  if (engine.observer != nullptr) engine.observer->failed(report);
  engine.hooks.out_of_memory(report);
  throw OutOfMemory(report);
}

}  // namespace cistern
