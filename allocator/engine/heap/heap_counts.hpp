// What a heap counts: for the statistics, and of what it has.
#pragma once

#include <array>
#include <cstdint>

#include "allocator/engine/statistics/totals.hpp"
#include "allocator/layout/layout.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

/// Guarded by the heap's lock. Of each kind of sizes, what was counted last of the free blocks of
/// segments in use is what its layout says now; backing >= what its layout has, as pages that the
/// device would not take back are counted too.
class HeapCounts {
 public:
  /// The layouts are the heap's.
  HeapCounts(Totals& totals, const Layout& small, const Layout& large)
      : totals_(totals), layouts_{&small, &large} {}

  /// Counts an operation: what it has changed of what the program holds, and of what lies free.
  void count(SizeKind kind, const Counts& held) noexcept;
  /// `bytes` of memory are this heap's from now on, or (sign -1) no more. `real`: they come from
  /// the device or go there, and not to another heap.
  void countBacking(SizeKind kind, std::uint64_t bytes, int sign, bool real) noexcept;
  /// For what the heap itself does not count.
  Totals& totals() { return totals_; }
  std::uint64_t reservedBytes() const { return backing_[0].bytes + backing_[1].bytes; }
  /// Of one kind of sizes, what there is of each statistic. Pre: the heap's caches are held still.
  /// Walks all blocks.
  StatArray usage(SizeKind kind) const;
  /// True at every so many hits.
  bool isTimeToPoll(std::uint64_t hits) noexcept {
    if (++hits_unpolled_ < hits) return false;
    hits_unpolled_ = 0;
    return true;
  }
  void audit(SizeKind kind) const;

 private:
  /// What was counted last of the free blocks of segments in use, and of their rises.
  struct Counted {
    Layout::SplitFree now, rises;
  };
  /// Segments or pages, and their bytes.
  struct BackingCount {
    std::uint64_t pieces = 0, bytes = 0;
  };

  const Layout& layout(SizeKind kind) const { return *layouts_[std::size_t(kind)]; }

  Totals& totals_;
  const std::array<const Layout*, kSizeKindCount> layouts_;
  std::array<Counted, kSizeKindCount> counted_;
  std::array<BackingCount, kSizeKindCount> backing_;
  std::uint64_t hits_unpolled_ = 0;
};

}  // namespace cistern
