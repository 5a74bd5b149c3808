#include "allocator/reports/accounting.hpp"

#include <algorithm>

#include "allocator/engine/cache/thread_cache.hpp"
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
    if (isOfDevice(heap->memory())) continue;
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
  stats.held_bytes = engine.pages.heldBytes() + engine.segments.heldBytes();
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

std::vector<LiveBlock> liveBlocks(const Pool& pool) {
  std::vector<LiveBlock> live;
  for (Heap* heap : pool.heaps()) {
    const MutexLock lock(heap->mutex());
    const HeldCaches held_still(*heap);
    forEachHeld(*heap, [&](const Block& block) { live.push_back(liveOf(block)); });
  }
  std::ranges::sort(live, {}, &LiveBlock::address);
  return live;
}

}  // namespace cistern
