// What a heap has for one kind of sizes, and what the statistics know of it.
#pragma once

#include <cstdint>

#include "allocator/engine/statistics/totals.hpp"
#include "allocator/layout/layout.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

/// A layout, and the memory behind it. Guarded by the heap's lock. At rest, what was counted last
/// of the free blocks of segments in use is what the layout says now; and
///
///   reservedBytes() >= totals().segment_bytes     pages that the device would not take back too
class CountedLayout : public Layout {
 public:
  CountedLayout(SizeKind kind, const SplitRules& given, Totals& statistics)
      : Layout(given), kind_(kind), statistics_(statistics) {}

  /// Counts an operation: what it has changed of what the program holds, and of what lies free.
  void count(const Counts& held = {}) noexcept;
  /// Counts a block that begins to wait for queued work (`blocks` is +1), or has ended:
  /// Totals::countPending.
  void countPending(const Block& block, int blocks, bool anew) noexcept {
    statistics_.countPending(kind_, block.bytes(), blocks, anew);
  }
  /// `bytes` of memory are this heap's from now on, or (sign -1) no more. `real`: they come from
  /// the device or go there, and not to another heap. `refused`: the device would not have them
  /// back.
  void countBacking(std::uint64_t bytes, int sign, bool real, bool refused = false) noexcept;
  std::uint64_t reservedBytes() const { return reserved_bytes_; }
  /// What there is of each statistic. Pre: the heap's caches are held still. Walks all blocks.
  StatArray usage() const;
  void audit() const;

 private:
  const SizeKind kind_;
  Totals& statistics_;
  SplitFree counted_, counted_rises_;  ///< of the free blocks of segments in use
  std::uint64_t pieces_ = 0;           ///< segments or pages
  std::uint64_t reserved_bytes_ = 0;   ///< theirs
};

}  // namespace cistern
