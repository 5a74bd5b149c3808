// What the allocator as a whole has: statistics, the limit, and what always holds. Settlements, on
// which statistics stand, are in settling.cpp.
#include <algorithm>

#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/engine/all_heaps.hpp"

namespace cistern {

MemoryStats CachingAllocator::memoryStats() const {
  MemoryStats stats;
  const auto read = [&](const std::vector<Heap*>& heaps, const AllCounters& all) CISTERN_NO_TSA {
    deal(all);
    stats.peaks_exact = ledger_.exact;
    stats.small = valuesOf(all, ledger_, 0);
    stats.large = valuesOf(all, ledger_, 1);
    stats.all = valuesOf(all, ledger_, 2);
    stats.host_bytes = all_heaps_.resting.host_bytes;
    for (Heap* heap : heaps) stats.host_bytes += heap->hostBytes();
  };
  {
    const MutexLock lock(settle_mutex_);
    withCounters(Caches::kEmptied, read);
  }
  stats.host_bytes +=
      heaps_.hostBytes() + segments_.hostBytes() + records_.hostBytes() + caches_.hostBytes();
  stats.host_bytes += sizeof(*this) - sizeof(caches_);
  stats.num_alloc_retries = num_alloc_retries_.load();
  stats.num_ooms = num_ooms_.load();
  stats.num_sync_all_streams = num_sync_all_streams_.load();
  stats.num_device_alloc = num_device_alloc_.load();
  stats.num_device_free = num_device_free_.load();
  stats.num_misuses = num_misuses_.load();
  if (!pages_) return stats;
  stats.pages = pages_->counts();
  stats.num_device_alloc += stats.pages.created;
  stats.num_device_free += stats.pages.returned;
  stats.host_bytes += pages_->hostBytes();
  return stats;
}

// A thread that gives up exact peaks holds its heap's lock. It comes before all of this, or after,
// if that heap is held here: so none rests meanwhile.
void CachingAllocator::resetPeakStats() {
  const MutexLock lock(settle_mutex_);
  for (Heap* heap : heaps_.all()) {
    const MutexLock heap_lock(heap->mutex());
    heap->noteChange();
  }
  withCounters(Caches::kEmptied,
               [this](const std::vector<Heap*>&, const AllCounters& all) CISTERN_NO_TSA {
                 ledger_.peak = {};
                 peaks_loose_.store(false, std::memory_order_relaxed);
                 settled_others_count_ = 0;
                 deal(all);
               });
}

void CachingAllocator::resetAccumulatedStats() {
  const MutexLock lock(settle_mutex_);
  withCounters(Caches::kEmptied, [this](const std::vector<Heap*>&, const AllCounters& all)
                                     CISTERN_NO_TSA { startAccumulating(all, ledger_); });
}

CacheInfo CachingAllocator::cacheInfo() const {
  CacheInfo info;
  withAllHeaps([&](const std::vector<Heap*>& heaps, const AllCounters&) CISTERN_NO_TSA {
    if (pages_) info.free_bytes = pages_->parkedBytes();
    for (Heap* heap : heaps) {
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
  withAllHeaps([&](const std::vector<Heap*>& heaps, const AllCounters& all) CISTERN_NO_TSA {
    for (Heap* heap : heaps) {
      heap->audit();
      const auto held = std::uint64_t(heap->counters().both(std::size_t(Stat::kReservedBytes)));
      reserved += held;
      if (heap->onPages()) in_pages += held;
      for (SizeKind kind : {SizeKind::kSmall, SizeKind::kLarge}) {
        for (Segment* s = heap->layout(kind).segments(); s; s = s->next) {
          const auto& own = static_cast<const HeapSegment&>(*s);
          CISTERN_CHECK(segments_.find(own.device_base) == s);
          CISTERN_CHECK(segments_.find(own.deviceEnd() - 1) == s);
        }
      }
      for (const ThreadCache* cache : heap->caches) cache->audit();
    }
    for (std::size_t kind = 0; kind < kLedgerKinds; ++kind) {
      for (std::size_t stat = 0; stat < kStatCount; ++stat) {
        std::int64_t ceilings = 0;
        for (const HeapCounters* own : all) ceilings += own->ceiling[kind][stat];
        CISTERN_CHECK(!ledger_.exact || peaks_loose_ || ceilings <= ledger_.peak[kind][stat]);
      }
    }
    heaps_.active().audit(heaps);
    CISTERN_CHECK(reserved <= limit_.reserved());
    if (pages_) pages_->audit(in_pages);
  });
}

}  // namespace cistern
