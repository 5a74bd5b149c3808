#include "allocator/engine/statistics/accounting.hpp"

#include <algorithm>

#include "allocator/base/check.hpp"

namespace cistern {

static std::uint64_t hostBytes(const Core& core) {
  std::uint64_t bytes = sizeof(Core) - sizeof(core.caches) - sizeof(core.pages) +
                        core.heaps.hostBytes() + core.map.hostBytes() + core.segments.hostBytes() +
                        core.totals.hostBytes() + core.caches.hostBytes() + core.pages.hostBytes();
  for (Heap* heap : core.heaps.all()) {
    const MutexLock lock(heap->mutex());
    bytes += heap->hostBytes();
  }
  return bytes;
}

MemoryStats memoryStats(Core& core) {
  MemoryStats stats;
  const Totals::Reading reading = core.totals.read();
  stats.peaks_exact = reading.peaks_exact;
  stats.small_pool = reading.small;
  stats.large_pool = reading.large;
  stats.all = reading.all;
  stats.host_bytes = hostBytes(core);
  stats.num_alloc_retries = core.retries.load();
  stats.num_ooms = core.out_of_memories.load();
  stats.num_sync_all_streams = core.waits.load();
  stats.num_misuses = core.misuses.load();
  stats.pages = core.pages.counts();
  stats.num_device_alloc = core.segments.taken() + stats.pages.created;
  stats.num_device_free = core.segments.returned() + stats.pages.returned;
  return stats;
}

MemoryStats::Values statsOf(const Core& core, const Pool& pool) {
  MemoryStats::Values values;
  for (Heap* heap : core.heapsOf(pool)) {
    const MutexLock lock(heap->mutex());
    const HeldCaches held_still(*heap);
    for (const SizeKind kind : kSizeKinds) {
      const StatArray usage = heap->counts().usage(kind);
      for (std::size_t stat = 0; stat < kStatCount; ++stat) values[stat].current += usage[stat];
    }
  }
  return values;
}

CacheInfo cacheInfo(Core& core) {
  CacheInfo info;
  withAllHeaps(core, [&](const std::vector<Heap*>& heaps) {
    info.free_bytes = core.pages.parkedBytes();
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

void audit(Core& core) {
  const MutexLock lock(core.pages.mutex());
  std::uint64_t reserved = 0, in_pages = 0;
  withAllHeaps(core, [&](const std::vector<Heap*>& heaps) {
    for (Heap* heap : heaps) {
      heap->mutex().assertHeld();
      heap->audit();
      reserved += heap->counts().reservedBytes();
      if (heap->onPages()) in_pages += heap->counts().reservedBytes();
      forEachSegment(*heap, [&](const HeapSegment& segment) {
        CISTERN_CHECK(core.map.find(segment.device_base) == &segment);
        CISTERN_CHECK(core.map.find(segment.deviceEnd() - 1) == &segment);
      });
      for (const ThreadCache* cache : heap->caches()) cache->blocks().audit();
    }
    core.heaps.offering().audit(heaps);
    CISTERN_CHECK(reserved <= core.limit.reserved());
    core.pages.audit(in_pages);
  });
}

}  // namespace cistern
