#include "allocator/engine/reports/accounting.hpp"

#include <algorithm>

#include "allocator/base/check.hpp"
#include "allocator/engine/core/core.hpp"
#include "cistern/allocator.hpp"

namespace cistern {

static std::uint64_t hostBytes(const Engine& engine) {
  std::uint64_t bytes = sizeof(Engine) - sizeof(engine.caches) - sizeof(engine.pages) +
                        engine.heaps.hostBytes() + engine.map.hostBytes() +
                        engine.segments.hostBytes() + engine.totals.hostBytes() +
                        engine.caches.hostBytes() + engine.pages.hostBytes();
  for (Heap* heap : engine.heaps.all()) {
    const MutexLock lock(heap->mutex());
    bytes += heap->hostBytes();
  }
  return bytes;
}

static std::uint64_t allocatedInHost(Engine& engine) {
  std::uint64_t bytes = 0;
  const MutexLock still(engine.pages.mutex());
  for (Heap* heap : engine.heaps.all()) {
    if (!heap->onPages() || pagesOf(*heap) == PageKind::kDevice) continue;
    const MutexLock lock(heap->mutex());
    const HeldCaches held_still(*heap);
    forEachBlock(*heap, [&](const Block& block) {
      engine.pages.mutex().assertHeld();
      if (block.state() == BlockState::kAllocated && ownership::heldByProgram(block))
        bytes += engine.pages.hostBytesIn(block);
    });
  }
  return bytes;
}

MemoryStats CachingAllocator::memoryStats() const { return statsOf(engine_->here("memoryStats")); }

MemoryStats statsOf(Engine& engine) {
  MemoryStats stats = engine.totals.read();
  stats.host_bytes = hostBytes(engine);
  stats.num_alloc_retries = engine.retries.load();
  stats.num_ooms = engine.out_of_memories.load();
  stats.num_sync_all_streams = engine.waits.load();
  stats.num_misuses = engine.misuses.load();
  stats.pages = engine.pages.counts();
  stats.memory_call_ns = engine.device.memoryCallNanoseconds();
  stats.asleep_bytes = engine.pages.asleepBytes();
  stats.asleep_host_bytes = engine.sleep_bytes;
  stats.host_page_bytes = engine.hostPageBytes();
  if (stats.host_page_bytes > 0) stats.host_page_allocated_bytes = allocatedInHost(engine);
  stats.num_device_alloc = engine.segments.taken() + stats.pages.created;
  stats.num_device_free = engine.segments.returned() + stats.pages.returned;
  return stats;
}

MemoryStats::Values statsOf(const Pool& pool) {
  MemoryStats::Values values;
  for (Heap* heap : pool.heaps()) {
    const MutexLock lock(heap->mutex());
    const HeldCaches held_still(*heap);
    for (const SizeKind kind : kSizeKinds) {
      const StatArray usage = heap->layout(kind).usage();
      for (std::size_t stat = 0; stat < kStatCount; ++stat) values[stat].current += usage[stat];
    }
    values[std::size_t(Stat::kSegment)].current -= std::int64_t(heap->host_pages);
    values[std::size_t(Stat::kReservedBytes)].current -= std::int64_t(heap->host_bytes);
  }
  return values;
}

CacheInfo CachingAllocator::cacheInfo() const {
  CacheInfo info;
  withAllHeaps(engine_->here("cacheInfo"), [&](const std::vector<Heap*>& heaps) {
    for (Heap* heap : heaps) {
      heap->mutex().assertHeld();
      for (SizeKind kind : kSizeKinds) {
        const FreeIndex& index = heap->layout(kind).freeBlocks();
        info.free_bytes += index.bytes();
        info.largest_free_block = std::max(info.largest_free_block, largestFree(index));
      }
    }
  });
  return info;
}

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

void audit(Engine& engine) {
  const MutexLock lock(engine.pages.mutex());
  std::uint64_t reserved = 0, in_pages = 0;
  withAllHeaps(engine, [&](const std::vector<Heap*>& heaps) {
    for (Heap* heap : heaps) {
      heap->mutex().assertHeld();
      heap->audit();
      reserved += heap->reservedBytes();
      if (heap->onPages()) in_pages += heap->reservedBytes();
      forEachSegment(*heap, [&](const HeapSegment& segment) {
        CISTERN_CHECK(engine.map.find(segment.device_base) == &segment);
        CISTERN_CHECK(engine.map.find(segment.deviceEnd() - 1) == &segment);
      });
      for (const ThreadCache* cache : heap->caches()) cache->blocks().audit();
    }
    if (engine.observed.load(std::memory_order_relaxed)) engine.observer->audit(heaps);
    engine.heaps.audit(heaps);
    CISTERN_CHECK(reserved <= engine.limit.reserved() + engine.hostPageBytes());
    engine.pages.audit(in_pages);
  });
}

}  // namespace cistern
