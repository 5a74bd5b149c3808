// What every hit changes of a heap's statistics, kept so that a hit pays little for it. How many
// blocks are busy, or free and split off, the layout knows by itself; the rest is here, with the
// limits that a hit is measured by, and is brought into HeapCounters when somebody looks.
//
// With C the ceilings of HeapCounters, while the limits are dealt:
//
//   limit(kind) <= C(kind)        limit(small) + limit(large) <= C(both)
//
// in each of the five, where C is the lower one of allocated and active. So a hit that stays within
// its kind's limits has passed no ceiling. One that does not looks at the ceilings and deals anew.
#pragma once

#include <cstdint>

#include "allocator/engine/cache/tally.hpp"
#include "allocator/layout/layout.hpp"

namespace cistern {

/// Free blocks of segments that are not wholly free.
struct SplitTally {
  std::int64_t blocks = 0, bytes = 0;
};

/// One kind of one heap. Guarded by the heap's lock.
struct HitCounts {
  Tally taken;                 ///< allocated since the counters were brought up to date
  std::int64_t requested = 0;  ///< bytes that the program asked for in the blocks it holds
  Tally pending;               ///< of busy blocks, those that the program does not hold
  SplitTally rises;            ///< the layout's, when the counters were brought up to date
  Tally limit{-1, -1, -1};     ///< of busy blocks, busy bytes and `requested`
  SplitTally split_limit{-1, -1};

  /// Whether the limits cover what there is now. (Differences, and not comparisons: one branch.)
  bool within(const Layout& now) const {
    return ((limit.blocks - std::int64_t(now.busyBlocks())) |
            (limit.bytes - std::int64_t(now.busyBytes())) | (limit.requested - requested) |
            (split_limit.blocks - std::int64_t(now.splitFreeBlocks())) |
            (split_limit.bytes - std::int64_t(now.splitFreeBytes()))) >= 0;
  }
  /// Nothing is covered any more, until limits are dealt again.
  void forgetLimits() {
    limit = {-1, -1, -1};
    split_limit = {-1, -1};
  }
  bool forgotten() const { return split_limit.blocks < 0; }  // room that is given raises the other
};

}  // namespace cistern
