// A heap's memory for one kind of sizes, and what the statistics know of it. Also the segments that
// are on their way from the heap to the device.
#pragma once

#include <cstdint>
#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/engine/ground/heap_segment.hpp"
#include "allocator/engine/ground/ownership.hpp"
#include "allocator/engine/statistics/totals.hpp"
#include "allocator/layout/layout.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

/// A layout, and the memory behind it. Guarded by the heap's lock. Between operations, `counted_`
/// equals the layout's split-free totals, and
///
///   reservedBytes() >= totals().segment_bytes, but in a heap that sleeps
///
/// The rest is pages that the device would not take back.
class CountedLayout : public Layout {
 public:
  CountedLayout(SizeKind kind, const SplitRules& given, Totals& statistics)
      : Layout(given), kind_(kind), statistics_(statistics) {}

  /// Counts an operation: what it has changed of what the program holds, and of what lies free.
  void count(const Counts& held = {}) noexcept {
    const SplitFree now{totals().split_free_blocks, totals().split_free_bytes};
    const SplitFree before = std::exchange(counted_, now);
    const SplitFree rises_before = std::exchange(counted_rises_, splitFreeRises());
    const Counts taken = held.blocks > 0 ? held : Counts{};
    statistics_.count(kind_, held + difference(now, before),
                      taken + difference(counted_rises_, rises_before));
  }
  /// Counts a block that begins (`blocks` is +1) or ends (-1) to wait for queued work:
  /// Totals::countPending.
  void countPending(const Block& block, int blocks, bool anew) noexcept {
    statistics_.countPending(kind_, block.bytes(), blocks, anew);
  }
  /// `bytes` of memory are this heap's from now on, or (sign -1) no more. `real`: they come from
  /// the device or go there, and not to another heap. `refused`: the device would not have them
  /// back.
  void countBacking(std::uint64_t bytes, int sign, bool real, bool refused = false) noexcept {
    pieces_ += std::uint64_t(sign);
    reserved_bytes_ += std::uint64_t(sign) * bytes;
    if (real) statistics_.countBacking(kind_, bytes, sign, sign > 0 && !refused);
  }
  std::uint64_t reservedBytes() const { return reserved_bytes_; }
  /// The present value of each statistic. Pre: the heap's caches are held still. Walks all blocks.
  StatArray usage() const {
    const LayoutTotals now = totals();
    Counts counts{0, 0, 0, std::int64_t(now.split_free_blocks), std::int64_t(now.split_free_bytes)};
    for (const Segment* s = segments(); s; s = s->next) {
      for (const Block* b = s->first; b; b = b->next) {
        if (b->state() == BlockState::kAllocated)
          counts = counts + Counts::block(b->bytes(), ownership::requested(*b), +1);
      }
    }
    StatArray all = counts.asStats();
    at(all, Stat::kActive) = std::int64_t(now.busy_blocks);
    at(all, Stat::kActiveBytes) = std::int64_t(now.busy_bytes);
    at(all, Stat::kSegment) = std::int64_t(pieces_);
    at(all, Stat::kReservedBytes) = std::int64_t(reserved_bytes_);
    return all;
  }
  void audit(bool asleep) const {
    Layout::audit();
    CISTERN_CHECK(counted_.blocks == totals().split_free_blocks);
    CISTERN_CHECK(counted_.bytes == totals().split_free_bytes);
    CISTERN_CHECK(asleep || reserved_bytes_ >= totals().segment_bytes);
  }

 private:
  static Counts difference(const SplitFree& now, const SplitFree& before) {
    return {0, 0, 0, std::int64_t(now.blocks - before.blocks),
            std::int64_t(now.bytes - before.bytes)};
  }

  const SizeKind kind_;
  Totals& statistics_;
  SplitFree counted_, counted_rises_;  ///< of the free blocks of segments in use
  std::uint64_t pieces_ = 0;           ///< segments or pages
  std::uint64_t reserved_bytes_ = 0;   ///< of the pieces
};

/// Segments that have left a heap for the device, and may come back: the device may refuse them.
/// Guarded by the heap's lock.
class LeavingSegments {
 public:
  /// Whether any segment is still leaving. While one is, the heap stays in its pool.
  bool any() const { return count_ != 0; }
  void begin() noexcept { ++count_; }
  void end() noexcept { --count_; }
  /// The device has refused to take back a segment that never became the heap's free memory. The
  /// segment goes on leaving, and is offered again.
  void refuse(HeapSegment& segment) noexcept { segment.next = std::exchange(refused_, &segment); }
  HeapSegment* takeRefused() noexcept {
    HeapSegment* const first = refused_;
    if (first != nullptr) refused_ = static_cast<HeapSegment*>(first->next);
    return first;
  }
  /// The refused segments, linked by `next`.
  const Segment* refused() const { return refused_; }

 private:
  std::uint32_t count_ = 0;
  HeapSegment* refused_ = nullptr;
};

}  // namespace cistern
