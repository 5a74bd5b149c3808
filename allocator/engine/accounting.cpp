// What the allocator as a whole has: statistics, the limit, and what always holds.
#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/engine/all_heaps.hpp"

namespace cistern {

MemoryStats CachingAllocator::memoryStats() const {
  MemoryStats stats;
  const Totals::Reading reading = totals_.read();
  stats.peaks_exact = reading.peaks_exact;
  stats.small = reading.small;
  stats.large = reading.large;
  stats.all = reading.all;
  for (Heap* heap : heaps_.all()) {
    const MutexLock lock(heap->mutex());
    stats.host_bytes += heap->hostBytes();
  }
  stats.host_bytes +=
      heaps_.hostBytes() + segments_.hostBytes() + records_.hostBytes() + caches_.hostBytes();
  stats.host_bytes += totals_.hostBytes();
  stats.host_bytes += sizeof(*this) - sizeof(caches_);
  stats.num_alloc_retries = num_alloc_retries_.load();
  stats.num_ooms = reports_.outOfMemories();
  stats.num_sync_all_streams = num_sync_all_streams_.load();
  stats.num_device_alloc = segment_backing_.taken();
  stats.num_device_free = segment_backing_.returned();
  stats.num_misuses = reports_.misuses();
  if (!pages_) return stats;
  stats.pages = pages_->counts();
  stats.num_device_alloc += stats.pages.created;
  stats.num_device_free += stats.pages.returned;
  stats.host_bytes += pages_->hostBytes();
  return stats;
}

void CachingAllocator::resetPeakStats() { totals_.resetPeaks(); }

void CachingAllocator::resetAccumulatedStats() { totals_.resetAccumulated(); }

CacheInfo CachingAllocator::cacheInfo() const {
  CacheInfo info;
  withAllHeaps([&](const std::vector<Heap*>& heaps) {
    if (pages_) info.free_bytes = pages_->parkedBytes();
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

void CachingAllocator::setLimit(std::uint64_t bytes) { limit_.set(bytes); }

void CachingAllocator::setMemoryFraction(double fraction) {
  if (!(fraction > 0 && fraction <= 1)) {
    throw InvalidArgument(
        fmt::format("memory fraction {} is outside the range: more than 0, at most 1", fraction));
  }
  setLimit(std::uint64_t(fraction * double(device_total_)));
}

void CachingAllocator::audit() const {
  if (!pages_) return auditHeaps();
  const MutexLock lock(pages_->mutex());
  auditHeaps();
}

void CachingAllocator::auditHeaps() const {
  std::uint64_t reserved = 0, in_pages = 0;
  withAllHeaps([&](const std::vector<Heap*>& heaps) {
    for (Heap* heap : heaps) {
      heap->mutex().assertHeld();
      heap->audit();
      reserved += heap->counts().reservedBytes();
      if (heap->onPages()) in_pages += heap->counts().reservedBytes();
      for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
        for (Segment* s = heap->layout(kind).segments(); s; s = s->next) {
          const auto& own = static_cast<const HeapSegment&>(*s);
          CISTERN_CHECK(segments_.find(own.device_base) == s);
          CISTERN_CHECK(segments_.find(own.deviceEnd() - 1) == s);
        }
      }
      for (const ThreadCache* cache : heap->caches()) cache->audit();
    }
    heaps_.offering().audit(heaps);
    CISTERN_CHECK(reserved <= limit_.reserved());
    if (pages_) pages_->audit(in_pages);
  });
}

}  // namespace cistern
