// The changes that one thread's verbs have made to one allocator's statistics since they were
// published last (totals.hpp). A hit adds to these and to nothing that another thread writes.
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
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "allocator/base/biased_lock.hpp"
#include "allocator/layout/recent_blocks.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

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

}  // namespace cistern
