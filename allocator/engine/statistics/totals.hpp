// The statistics of one allocator: what all threads have changed, and peaks.
//
// Each thread that allocates counts for itself (ThreadCounters) and publishes now and then. A
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
#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "allocator/base/biased_lock.hpp"
#include "allocator/base/mutex.hpp"
#include "allocator/base/process.hpp"
#include "allocator/layout/recent_blocks.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

// ---- The counters of one thread ----------------------------------------------------------------
//
// The changes that one thread's verbs have made to one allocator's statistics since they were
// published last. A hit adds to these and to nothing that another thread writes.
//
//   what there is == published + full - room
//   0 <= room, room.bytes <= most_bytes           between operations of the owner
//   room.bytes <= full.bytes                      the same, where several threads allocate: then
//                                                 published <= what there is, in bytes
//
// A rise uses room up and a fall makes more. An operation that breaks the last two is followed by a
// publication, after which there is room again; Totals decides how much.
//
// The owner changes its counters under its biased lock, or the lock of Totals. Anyone else looks at
// them, and changes them, under the lock of Totals and while the biased lock is revoked.
//
// A thread has its counters as long as it lives, for another allocator when theirs is gone. So a
// thread may take the biased lock before it knows whether the allocator still is there
// (fast_path.hpp). The counters keep the caches that the thread has of that allocator, until they
// are another's.

class ThreadCache;
class Totals;

/// One number for each statistic.
using StatArray = std::array<std::int64_t, kStatCount>;
inline std::int64_t& at(StatArray& all, Stat stat) { return all[std::size_t(stat)]; }
inline std::int64_t at(const StatArray& all, Stat stat) { return all[std::size_t(stat)]; }

struct Counts {
  std::int64_t blocks = 0;        ///< that the program holds
  std::int64_t bytes = 0;         ///< of those blocks, rounding included
  std::int64_t requested = 0;     ///< bytes that the program asked for in them
  std::int64_t split_blocks = 0;  ///< free blocks of segments that are not wholly free
  std::int64_t split_bytes = 0;

  static Counts block(std::uint64_t bytes, std::uint64_t requested, int sign) {
    return {sign, sign * std::int64_t(bytes), sign * std::int64_t(requested)};
  }
  /// Applies the operation to each number of the one and that of the other.
  template <class Operation>
  friend Counts each(const Counts& a, const Counts& b, Operation of) {
    return {of(a.blocks, b.blocks), of(a.bytes, b.bytes), of(a.requested, b.requested),
            of(a.split_blocks, b.split_blocks), of(a.split_bytes, b.split_bytes)};
  }
  friend Counts operator+(const Counts& a, const Counts& b) { return each(a, b, std::plus()); }
  friend Counts operator-(const Counts& a, const Counts& b) { return each(a, b, std::minus()); }
  friend Counts half(const Counts& of) {
    return each(of, of, [](std::int64_t x, std::int64_t) { return x / 2; });
  }
  friend Counts least(const Counts& a, const Counts& b) {
    return each(a, b, [](std::int64_t x, std::int64_t y) { return std::min(x, y); });
  }
  bool anyNegative() const { return (blocks | bytes | requested | split_blocks | split_bytes) < 0; }
  /// As statistics: what the program holds is active.
  StatArray asStats() const {
    StatArray all{};
    at(all, Stat::kAllocation) = at(all, Stat::kActive) = blocks;
    at(all, Stat::kAllocatedBytes) = at(all, Stat::kActiveBytes) = bytes;
    at(all, Stat::kRequestedBytes) = requested;
    at(all, Stat::kInactiveSplit) = split_blocks;
    at(all, Stat::kInactiveSplitBytes) = split_bytes;
    return all;
  }
};

struct alignas(64) ThreadCounters {
  /// The counters of one kind of sizes.
  struct Kind {
    Counts room;
    Counts taken;  ///< what was added since the last publication, without what went
    Counts full;
    std::int64_t most_bytes = 0;  ///< kAlone: only one thread allocates
    static constexpr std::int64_t kAlone = INT64_MAX;

    /// One block that the program takes. Returns `near()`; or, if there was no room for it,
    /// `far(bytes, requested)`. Then `far` has to take its arguments from the room, and to publish
    /// once the biased lock is free.
    // Each line of the room is a subtraction from memory and a branch. The rest is not subtracted
    // here: the compiler would do that before the branch, in more instructions.
    template <class Far, class Near>
    [[gnu::always_inline]] auto take(std::uint64_t bytes, std::uint64_t requested, Far far,
                                     Near near) noexcept {
      taken.blocks += 1;
      taken.bytes += std::int64_t(bytes);
      taken.requested += std::int64_t(requested);
      if ((room.blocks -= 1) < 0) [[unlikely]]
        return far(bytes, requested);
      if ((room.bytes -= std::int64_t(bytes)) < 0) [[unlikely]]
        return far(0, requested);
      if ((room.requested -= std::int64_t(requested)) < 0) [[unlikely]]
        return far(0, 0);
      return near();
    }
    void useUp(std::uint64_t bytes, std::uint64_t requested) noexcept {
      room.bytes -= std::int64_t(bytes);
      room.requested -= std::int64_t(requested);
    }
    /// One block that it gives back. True: publish, once the biased lock is free.
    // It looks at bytes alone: totals.hpp says what that means for the other peaks.
    bool give(std::uint64_t bytes, std::uint64_t requested) noexcept {
      room.blocks += 1;
      room.bytes += std::int64_t(bytes);
      room.requested += std::int64_t(requested);
      return room.bytes > most_bytes;
    }
    /// Any change, and what of it counts as taken.
    bool change(const Counts& by, const Counts& taken_by) noexcept {
      room = room - by;
      taken = taken + taken_by;
      return room.anyNegative() || (most_bytes != kAlone && (full - room).anyNegative());
    }
  };

  /// Counters of no allocator, and nobody's: the biased lock is revoked for ever.
  constexpr ThreadCounters() noexcept : biased_lock(true) {}
  ThreadCounters(Totals& all, std::int64_t first_step) noexcept : totals(&all), step(first_step) {}
  Kind& of(SizeKind kind) { return kinds[std::size_t(kind)]; }
  /// The thread ends, or its counters become another allocator's: no cache is its any more.
  void letCachesGo() noexcept;

  BiasedLock biased_lock;
  std::atomic<Totals*> totals{nullptr};  ///< null when the allocator is gone
  std::array<Kind, kSizeKindCount> kinds{};
  std::int64_t step = 0;  ///< half of one, in bytes; set by Totals
  std::vector<ThreadCache*> caches;
  RecentBlocks recents;  ///< of all of these; changed under the biased lock

  static ThreadCounters nobodys;
};
inline constinit ThreadCounters ThreadCounters::nobodys;

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
  /// Memory comes (`sign` is +1), or goes. `taken`: it comes from the device, which has not just
  /// refused to take it back.
  void countBacking(SizeKind kind, std::uint64_t bytes, int sign, bool taken) noexcept;
  /// It is for the other kind of sizes from now on. No reader sees it missing, or counted twice.
  void moveBacking(SizeKind from, SizeKind to, std::uint64_t bytes) noexcept;

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
  void addBacking(SizeKind kind, std::uint64_t bytes, int sign, bool taken) noexcept
      CISTERN_REQUIRES(mutex_);
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
