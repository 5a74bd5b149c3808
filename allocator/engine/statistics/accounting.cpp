#include "allocator/engine/statistics/accounting.hpp"

#include <algorithm>

#include "allocator/base/check.hpp"
#include "allocator/engine/all_heaps.hpp"

namespace cistern {

MemoryStats Accounting::memoryStats() const {
  MemoryStats stats;
  const Totals::Reading reading = core_.totals.read();
  stats.peaks_exact = reading.peaks_exact;
  stats.small = reading.small;
  stats.large = reading.large;
  stats.all = reading.all;
  stats.host_bytes = hostBytes();
  stats.num_alloc_retries = core_.retries.load();
  stats.num_ooms = core_.reports.outOfMemories();
  stats.num_sync_all_streams = core_.waits.load();
  stats.num_device_alloc = core_.segments.taken();
  stats.num_device_free = core_.segments.returned();
  stats.num_misuses = core_.reports.misuses();
  stats.pages = core_.pages.counts();
  stats.num_device_alloc += stats.pages.created;
  stats.num_device_free += stats.pages.returned;
  return stats;
}

std::uint64_t Accounting::hostBytes() const {
  std::uint64_t bytes = sizeof(Core) - sizeof(core_.caches) - sizeof(core_.pages) +
                        core_.heaps.hostBytes() + core_.map.hostBytes() +
                        core_.segments.hostBytes() + core_.totals.hostBytes() +
                        core_.caches.hostBytes() + core_.pages.hostBytes();
  for (Heap* heap : core_.heaps.all()) {
    const MutexLock lock(heap->mutex());
    bytes += heap->hostBytes();
  }
  return bytes;
}

CacheInfo Accounting::cacheInfo() const {
  CacheInfo info;
  withAllHeaps(core_, [&](const std::vector<Heap*>& heaps) {
    info.free_bytes = core_.pages.parkedBytes();
    for (Heap* heap : heaps) {
      heap->mutex().assertHeld();
      for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
        const FreeIndex& index = heap->layout(kind).freeBlocks();
        info.free_bytes += index.bytes();
        info.largest_free_block = std::max(info.largest_free_block, largestFree(index));
      }
    }
  });
  return info;
}

void Accounting::audit() const {
  const MutexLock lock(core_.pages.mutex());
  auditHeaps();
}

void Accounting::auditHeaps() const {
  std::uint64_t reserved = 0, in_pages = 0;
  withAllHeaps(core_, [&](const std::vector<Heap*>& heaps) {
    for (Heap* heap : heaps) {
      heap->mutex().assertHeld();
      heap->audit();
      reserved += heap->counts().reservedBytes();
      if (heap->onPages()) in_pages += heap->counts().reservedBytes();
      for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
        for (Segment* s = heap->layout(kind).segments(); s; s = s->next) {
          const auto& own = static_cast<const HeapSegment&>(*s);
          CISTERN_CHECK(core_.map.find(own.device_base) == s);
          CISTERN_CHECK(core_.map.find(own.deviceEnd() - 1) == s);
        }
      }
      for (const ThreadCache* cache : heap->caches()) cache->blocks().audit();
    }
    core_.heaps.offering().audit(heaps);
    CISTERN_CHECK(reserved <= core_.limit.reserved());
    core_.pages.audit(in_pages);
  });
}

}  // namespace cistern
