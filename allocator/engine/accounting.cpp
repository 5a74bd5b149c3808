// Statistics: how shares become totals, and how peaks stay exact (see statistics.hpp).
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/check.hpp"
#include "allocator/engine/cache/held_caches.hpp"
#include "allocator/engine/caching_allocator.hpp"

namespace cistern {
namespace {

/// How often exact peaks may hold all threads still, after a hit.
constexpr int kMostOftenWithOthers = 100;

constexpr std::size_t kKinds = kSizeKindCount + 1;  // small, large, both

std::int64_t shareOf(const std::array<StatArray, kSizeKindCount>& counts, std::size_t kind,
                     std::size_t stat) {
  return kind < kSizeKindCount ? counts[kind][stat] : counts[0][stat] + counts[1][stat];
}

/// Of all heaps, brought up to date.
using AllCounters = std::vector<HeapCounters*>;

template <class Counts>
std::int64_t total(const AllCounters& all, std::size_t kind, std::size_t stat, Counts counts) {
  std::int64_t sum = 0;
  for (const HeapCounters* one : all) sum += shareOf(one->*counts, kind, stat);
  return sum;
}

}  // namespace

// Holds every heap still, in the order in which they were made, and then the caches.
template <class Visit>
void CachingAllocator::withAllHeaps(Visit visit) const CISTERN_NO_TSA {
  const MutexLock lock(settle_mutex_);
  withAllHeapsSettling(Caches::kEmptied, visit);
}

// What may throw comes before the locks: nobody would give them up.
template <class Visit>
void CachingAllocator::withAllHeapsSettling(Caches caches, Visit visit) const CISTERN_NO_TSA {
  auto& [heaps, changes, counters] = all_heaps_;
  heaps_.refresh(heaps, changes);
  counters.clear();
  counters.reserve(heaps.size());
  for (Heap* heap : heaps) heap->mutex().lock();
  {
    const HeldCaches held_still(heaps, caches);
    settled_others_ = held_still.closedOthers();
    had_cached_ = held_still.hadAny();
    for (Heap* heap : heaps) counters.push_back(&heap->counters());
    visit(heaps, counters);
  }
  for (Heap* heap : heaps) heap->mutex().unlock();
}

namespace {

using Totals = std::array<StatArray, kKinds>;

inline void setCeiling(HeapCounters& own, std::size_t kind, std::size_t stat, std::int64_t to,
                       bool exact) {
  std::int64_t& ceiling = own.ceiling[kind][stat];
  ceiling = exact || noHitChanges(stat) ? to : std::max(ceiling, to);
}

// What the program has of it: not what lies in caches.
std::int64_t held(const HeapCounters& own, std::size_t kind, std::size_t stat) {
  return shareOf(own.current, kind, stat) - shareOf(own.cached, kind, stat);
}

// One heap has all there is to have.
void giveCeilings(HeapCounters& own, StatLedger& ledger) {
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    for (std::size_t stat = 0; stat < kStatCount; ++stat) {
      std::int64_t& peak = ledger.peak[kind][stat];
      peak = std::max(peak, held(own, kind, stat));
      setCeiling(own, kind, stat, peak + shareOf(own.cached, kind, stat), ledger.exact);
    }
  }
}

// Raises the peaks to the present totals; what lies between, for each of the heaps.
Totals sharesOf(const AllCounters& all, StatLedger& ledger) {
  Totals shares{};
  for (const HeapCounters* one : all) {
    for (std::size_t stat = 0; stat < kStatCount; ++stat) {
      shares[0][stat] += one->current[0][stat] - one->cached[0][stat];
      shares[1][stat] += one->current[1][stat] - one->cached[1][stat];
    }
  }
  for (std::size_t stat = 0; stat < kStatCount; ++stat)
    shares[kSizeKindCount][stat] = shares[0][stat] + shares[1][stat];
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    for (std::size_t stat = 0; stat < kStatCount; ++stat) {
      std::int64_t &share = shares[kind][stat], &peak = ledger.peak[kind][stat];
      peak = std::max(peak, share);
      share = peak - share;
      if (share != 0) share /= std::int64_t(all.size());  // mostly it is; a division takes long
    }
  }
  return shares;
}

// Deals what lies between the totals and their peaks out as ceilings.
void dealCeilings(const AllCounters& all, StatLedger& ledger) {
  if (all.size() == 1) return giveCeilings(*all.front(), ledger);
  const Totals shares = sharesOf(all, ledger);
  for (HeapCounters* own : all) {
    for (std::size_t stat = 0; stat < kStatCount; ++stat) {
      const std::int64_t small = own->current[0][stat], large = own->current[1][stat];
      setCeiling(*own, 0, stat, small + shares[0][stat], ledger.exact);
      setCeiling(*own, 1, stat, large + shares[1][stat], ledger.exact);
      setCeiling(*own, 2, stat, small + large + shares[2][stat], ledger.exact);
    }
  }
}

MemoryStats::Values valuesOf(const AllCounters& all, const StatLedger& ledger, std::size_t kind) {
  MemoryStats::Values values;
  for (std::size_t stat = 0; stat < kStatCount; ++stat) {
    const std::int64_t current = total(all, kind, stat, &HeapCounters::current);
    const std::int64_t allocated = total(all, kind, stat, &HeapCounters::allocated);
    values[stat] = {current, ledger.peak[kind][stat], allocated - ledger.allocated_base[kind][stat],
                    allocated - current - ledger.freed_base[kind][stat]};
  }
  return values;
}

}  // namespace

void CachingAllocator::deal(const std::vector<HeapCounters*>& all) const noexcept {
  ledger_.exact = !peaks_loose_.load(std::memory_order_relaxed);
  dealCeilings(all, ledger_);
}

void CachingAllocator::settle() noexcept {
  const MutexLock lock(settle_mutex_);
  settleNow(Caches::kCounted);
}

// After a miss, and after memory was given back: heaps whose pages went have other free pieces now.
// Nobody is held still for it unless one of them has passed a ceiling.
void CachingAllocator::settleIfOver() noexcept {
  const MutexLock lock(settle_mutex_);
  try {
    heaps_.refresh(all_heaps_.heaps, all_heaps_.changes);
  } catch (const std::bad_alloc&) {
    return settleNow(Caches::kCounted);
  }
  const auto over = [](Heap* heap) {
    const MutexLock heap_lock(heap->mutex());
    return heap->overAnyCeiling();
  };
  if (std::any_of(all_heaps_.heaps.begin(), all_heaps_.heaps.end(), over))
    settleNow(Caches::kCounted);
}

void CachingAllocator::settleNow(Caches caches) noexcept {
  try {
    withAllHeapsSettling(caches, [this](const std::vector<Heap*>&, const AllCounters& all)
                                     CISTERN_NO_TSA { deal(all); });
  } catch (const std::bad_alloc&) {
    // The host is short of memory: whoever passes a ceiling next settles.
  }
}

// A round begins with empty caches, so that it is like the one before. Who is settling now is in
// the next round already. Other threads lose theirs only where the program has let go of nearly all
// that it had, which is once a round at most.
void CachingAllocator::emptyCachesAtEbb(Heap& heap) noexcept CISTERN_NO_TSA {
  if (!settle_mutex_.try_lock()) return;
  const MutexUnlock unlock(settle_mutex_);
  if (!settled_others_ || heap.nearlyFree()) settleNow(Caches::kEmptied);
}

// After a hit or a free that has passed a ceiling of `heap`. Who finds another at it after a while
// of trying gives up exact peaks rather than wait (statistics.hpp says what they are then).
void CachingAllocator::settleFor(Heap& heap) noexcept CISTERN_NO_TSA {
  constexpr int kTries = 100;  // about as long as another thread's settlement of a few heaps takes
  for (int i = 0; i < kTries && !peaks_loose_.load(std::memory_order_relaxed); ++i) {
    if (!settle_mutex_.try_lock()) continue;
    const MutexUnlock unlock(settle_mutex_);
    settleNow(Caches::kCounted);
    // Each time, the others were held still.
    if (settled_others_ && ++settled_others_count_ == kMostOftenWithOthers) (void)loosePeaks(heap);
    return;
  }
  if (!loosePeaks(heap)) settle();
}

// False when the heap is over a ceiling all the same: what is never loose, a low tide may have
// moved between small and large.
bool CachingAllocator::loosePeaks(Heap& heap) noexcept {
  const MutexLock lock(heap.mutex());  // a reset, which holds it too, comes before both or after
  peaks_loose_.store(true, std::memory_order_relaxed);
  HeapCounters& counters = heap.counters();
  counters.raiseCeilings();
  return !counters.overCeiling(SizeKind::kSmall) && !counters.overCeiling(SizeKind::kLarge);
}

// Who needs more memory than there is takes what the threads keep first. True if there was any.
bool CachingAllocator::takeCachesBack() noexcept {
  if (!caches_.any()) return false;
  bool any = false, any_ebbed = false;
  try {
    withAllHeaps([&](const std::vector<Heap*>& heaps, const AllCounters& all) CISTERN_NO_TSA {
      if (settled_others_) deal(all);  // so that what comes next need not hold them still again
      any = had_cached_;
      for (const Heap* heap : heaps) any_ebbed |= heap->ebbed;
    });
    if (!pages_ || !any_ebbed) return any;
    for (Heap* heap : heaps_.all()) {
      heap->mutex().lock();
      const bool low = heap->pages_moved && heap->busyBytes() <= heap->tide.ebb();
      const bool ebbed = std::exchange(heap->ebbed, false) && low;
      heap->mutex().unlock();
      if (ebbed) atLowTide(*heap);
    }
  } catch (const std::bad_alloc&) {
    // The host is short of memory: what was not looked at stays where it is.
  }
  return any;
}

MemoryStats CachingAllocator::memoryStats() const {
  MemoryStats stats;
  withAllHeaps([&](const std::vector<Heap*>& heaps, const AllCounters& all) CISTERN_NO_TSA {
    deal(all);
    stats.peaks_exact = ledger_.exact;
    stats.small = valuesOf(all, ledger_, 0);
    stats.large = valuesOf(all, ledger_, 1);
    stats.all = valuesOf(all, ledger_, 2);
    for (Heap* heap : heaps) stats.host_bytes += heap->hostBytes();
  });
  stats.host_bytes += segments_.hostBytes() + records_.hostBytes() + caches_.hostBytes();
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

void CachingAllocator::resetPeakStats() {
  withAllHeaps([this](const std::vector<Heap*>&, const AllCounters& all) CISTERN_NO_TSA {
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      ledger_.peak[kind].fill(0);
    }
    peaks_loose_.store(false, std::memory_order_relaxed);
    settled_others_count_ = 0;
    deal(all);
  });
}

void CachingAllocator::resetAccumulatedStats() {
  withAllHeaps([this](const std::vector<Heap*>&, const AllCounters& all) CISTERN_NO_TSA {
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      for (std::size_t stat = 0; stat < kStatCount; ++stat) {
        const std::int64_t allocated = total(all, kind, stat, &HeapCounters::allocated);
        const std::int64_t current = total(all, kind, stat, &HeapCounters::current);
        ledger_.allocated_base[kind][stat] = allocated;
        ledger_.freed_base[kind][stat] = allocated - current;
      }
    }
  });
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
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      for (std::size_t stat = 0; stat < kStatCount; ++stat) {
        std::int64_t ceilings = 0;
        for (const HeapCounters* own : all) ceilings += own->ceiling[kind][stat];
        CISTERN_CHECK(!ledger_.exact || peaks_loose_ || ceilings <= ledger_.peak[kind][stat]);
      }
    }
    CISTERN_CHECK(reserved <= limit_.reserved());
    if (pages_) pages_->audit(in_pages);
  });
}

}  // namespace cistern
