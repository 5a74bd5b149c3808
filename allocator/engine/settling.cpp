// Settlements: what heaps count becomes totals and peaks, and new ceilings are dealt. Why peaks are
// exact, and when they are loose: statistics.hpp.
#include <algorithm>
#include <utility>
#include <vector>

#include "allocator/engine/all_heaps.hpp"

namespace cistern {
namespace {

/// How often exact peaks may hold all threads still, after a hit.
constexpr int kMostOftenWithOthers = 100;

}  // namespace

void CachingAllocator::deal(const AllCounters& all) const noexcept {
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
  std::vector<Heap*> heaps;
  try {
    heaps = heaps_.active().all();
  } catch (const std::bad_alloc&) {
    return settleNow(Caches::kCounted);
  }
  const auto over = [](Heap* heap) {
    const MutexLock heap_lock(heap->mutex());
    return heap->overAnyCeiling();
  };
  if (std::any_of(heaps.begin(), heaps.end(), over)) settleNow(Caches::kCounted);
}

void CachingAllocator::settleNow(Caches caches) noexcept {
  try {
    withCounters(caches, [this](const std::vector<Heap*>&, const AllCounters& all)
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
  heap.noteChange();                   // it may have gone to rest while this thread tried
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
    {
      const MutexLock lock(settle_mutex_);
      withCounters(Caches::kEmptied,
                   [&](const std::vector<Heap*>& heaps, const AllCounters& all) CISTERN_NO_TSA {
                     // So that what comes next need not hold them still again.
                     if (settled_others_) deal(all);
                     any = had_cached_;
                     for (const Heap* heap : heaps) any_ebbed |= heap->ebbed;
                   });
    }
    if (!pages_ || !any_ebbed) return any;
    for (Heap* heap : heaps_.active().all()) {  // none that has ebbed goes to rest
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

}  // namespace cistern
