// The statistics of one allocator: what all threads have changed, and peaks.
//
// Each thread that allocates counts for itself (thread_counters.hpp) and publishes now and then. A
// read adds what threads have not published, so that current values are exact. For peaks, it
// depends on how many threads allocate:
//
//   one       It has room up to the peaks, and publishes when it goes beyond. Peaks are exact.
//   several   Each publishes before its counters have changed by a step. The bytes that count as
//             published are never more than there are: published <= now <= published + step. So
//             their peak is never too high, and too low by at most threads x step for either kind
//             of sizes. The peaks of blocks and of requested bytes may also be too high, as a hit
//             looks at bytes alone when it frees. A thread may take few large blocks out of its
//             cache and give many small ones for them. It counts as holding these too until it
//             publishes. The excess is no more than what threads' caches keep. A step is 64 KiB
//             and 64 blocks. It is larger for a thread that would publish more often than once in
//             64 allocations. Otherwise threads with larger blocks would all write to one place at
//             each hit. But it is larger only within one of two bounds. Either both kinds' steps
//             of one thread are 1/8192 of the device at most (10 MiB of 80 GiB). Or all steps
//             together are 1/128 of the peak at most.
//
// Threads that only free publish at once, and so does a thread for which no counters can be had.
// Statistics that hits do not count (segments, reserved bytes, blocks that wait for queued work)
// are counted here directly, and exactly.
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"
#include "allocator/engine/statistics/thread_counters.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

/// The sums that all threads have published, of small sizes, large ones, and both. They are the
/// present values, their peaks, and what was taken since somebody last reset that count. One peak
/// more is that of active bytes since somebody took it. No lock of its own.
///
///   now[both] == now[small] + now[large], taken likewise;  now <= peak after raisePeaks(), and
///   active bytes <= the peak to take
class StatSums {
 public:
  static constexpr std::size_t kBoth = kSizeKindCount;

  void add(std::size_t kind, Stat stat, std::int64_t by, bool taken) {
    for (const std::size_t of : {kind, kBoth}) {
      at(now_[of], stat) += by;
      if (taken) at(taken_[of], stat) += by;
    }
  }
  void add(std::size_t kind, const Counts& by, const Counts& taken) {
    const StatArray change = by.asStats(), taken_change = taken.asStats();
    for (const std::size_t of : {kind, kBoth}) {
      for (std::size_t stat = 0; stat < kStatCount; ++stat) {
        now_[of][stat] += change[stat];
        taken_[of][stat] += taken_change[stat];
      }
    }
  }
  void raisePeak(Stat stat) {
    for (std::size_t kind = 0; kind <= kBoth; ++kind)
      at(peak_[kind], stat) = std::max(at(peak_[kind], stat), at(now_[kind], stat));
    if (stat == Stat::kActiveBytes) peak_to_take_ = std::max(peak_to_take_, active());
  }
  void raisePeaks() {
    for (std::size_t stat = 0; stat < kStatCount; ++stat) raisePeak(Stat(stat));
  }
  /// Sets the peaks to what there is now.
  void resetPeaks() { peak_ = now_; }
  /// The most bytes that were active since it was called last.
  std::int64_t takePeak() { return std::exchange(peak_to_take_, active()); }
  void resetTaken() {
    taken_ = {};
    before_ = now_;
  }

  std::int64_t peak(Stat stat) const { return at(peak_[kBoth], stat); }
  /// How far what hits change is below its peaks.
  Counts room(std::size_t kind) const {
    const auto below = [&](Stat stat) { return at(peak_[kind], stat) - at(now_[kind], stat); };
    std::int64_t active_bytes = below(Stat::kActiveBytes);
    if (kind == kBoth) active_bytes = std::min(active_bytes, peak_to_take_ - active());
    return {std::min(below(Stat::kAllocation), below(Stat::kActive)),
            std::min(below(Stat::kAllocatedBytes), active_bytes), below(Stat::kRequestedBytes),
            below(Stat::kInactiveSplit), below(Stat::kInactiveSplitBytes)};
  }
  MemoryStats::Values valuesOf(std::size_t kind) const {
    MemoryStats::Values values;
    for (std::size_t stat = 0; stat < kStatCount; ++stat) {
      const std::int64_t now = now_[kind][stat], taken = taken_[kind][stat];
      values[stat] = {now, peak_[kind][stat], taken, taken - (now - before_[kind][stat])};
    }
    return values;
  }

 private:
  using PerKind = std::array<StatArray, kSizeKindCount + 1>;

  std::int64_t active() const { return at(now_[kBoth], Stat::kActiveBytes); }

  PerKind now_{}, peak_{};
  std::int64_t peak_to_take_ = 0;  ///< of active bytes, which resetPeaks leaves as it is
  PerKind taken_{};                ///< since resetTaken
  PerKind before_{};               ///< what there was then
};

class Totals {
 public:
  /// `device_total`: bytes of memory that the device has.
  explicit Totals(std::uint64_t device_total = 0);
  ~Totals();

  // ---- The calling thread ----------------------------------------------------------------------

  /// Its counters; null when it has none.
  ThreadCounters* mine() const noexcept {
    return seen_->totals.load(std::memory_order_relaxed) == this ? seen_ : lookUp();
  }
  /// mine(), made if there are none. Null when the host is short of memory, or biased locks do not
  /// work.
  ThreadCounters* join() noexcept;
  /// The calling thread's verb has changed the counters by `by`; `taken`: what of it was added.
  void count(SizeKind kind, const Counts& by, const Counts& taken) noexcept {
    ThreadCounters* const own = mine();
    if (own == nullptr || !own->biased_lock.tryLock()) [[unlikely]]
      return countOutside(own, kind, by, taken);
    const bool far = own->of(kind).change(by, taken);
    own->biased_lock.unlock();
    if (far) [[unlikely]]
      publish(*own);
  }
  /// The program has taken a block (`sign` is +1), or given one back.
  void countBlock(SizeKind kind, std::uint64_t bytes, std::uint64_t requested, int sign) noexcept {
    static constexpr Counts kNone{};
    const Counts block = Counts::block(bytes, requested, sign);
    count(kind, block, sign > 0 ? block : kNone);
  }
  /// Returns when all other threads have been without their biased locks at one moment since the
  /// call.
  void awaitHits() noexcept;
  /// From now on no thread has its biased lock, so that there are no hits; or there are again.
  /// Pre: it changes that.
  void refuseHits(bool refused) noexcept;
  /// Publishes counters that hits have taken beyond the room. Pre: they are the calling thread's,
  /// which does not hold their biased lock. In a child of fork nothing is published.
  void publish(ThreadCounters& counters) noexcept;

  // ---- What no hit changes ---------------------------------------------------------------------

  /// Blocks that wait for queued work (`blocks` +1 or -1): they are active, but not allocated.
  /// `anew`: they were free before, or (-1) are allocated again, so that it is another block that
  /// has become active, or one less.
  void countPending(SizeKind kind, std::uint64_t bytes, int blocks, bool anew) noexcept;
  /// Memory comes (`sign` is +1), or goes. `taken`: it comes from the device, and not back from
  /// there, or from another kind of sizes.
  void countBacking(SizeKind kind, std::uint64_t bytes, int sign, bool taken) noexcept;

  // ---- Reading ---------------------------------------------------------------------------------

  /// The statistics that are counted here, of all that MemoryStats has.
  MemoryStats read() noexcept;
  void resetPeaks() noexcept;
  /// The most bytes that were active at a time since it was called last, or ever. As exact as the
  /// peaks of statistics, which it leaves as they are.
  std::uint64_t takePeak() noexcept;
  void resetAccumulated() noexcept;
  std::size_t hostBytes() const noexcept;

 private:
  struct Mine;
  class AllStill;

  ThreadCounters* lookUp() const noexcept;
  void countOutside(ThreadCounters* own, SizeKind kind, const Counts& by,
                    const Counts& taken) noexcept;
  void leave(ThreadCounters& counters) noexcept;
  void fold(ThreadCounters& counters) noexcept CISTERN_REQUIRES(mutex_);
  void dealAlone(ThreadCounters& counters) noexcept CISTERN_REQUIRES(mutex_);
  void deal(ThreadCounters& counters) noexcept CISTERN_REQUIRES(mutex_);
  void publishLocked(ThreadCounters& counters) noexcept CISTERN_REQUIRES(mutex_);
  void raisePeaks() noexcept CISTERN_REQUIRES(mutex_);

  const Birthplace made_;
  const std::int64_t device_total_;
  mutable Mutex mutex_{LockRank::kTotals};
  std::vector<ThreadCounters*> threads_ CISTERN_GUARDED_BY(mutex_);
  StatSums sums_ CISTERN_GUARDED_BY(mutex_);         ///< what was published, by whomever
  bool exact_ CISTERN_GUARDED_BY(mutex_) = true;     ///< one thread at most since peaks were reset
  bool refused_ CISTERN_GUARDED_BY(mutex_) = false;  ///< hits are

  /// The counters that the thread has used last, of any allocator.
  inline static constinit thread_local ThreadCounters* seen_ = &ThreadCounters::nobodys;
};

}  // namespace cistern
