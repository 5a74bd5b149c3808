#include "allocator/engine/heap/heap_counts.hpp"

#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/engine/cache/ownership.hpp"

namespace cistern {

static Counts difference(const Layout::SplitFree& now, const Layout::SplitFree& before) {
  return {0, 0, 0, std::int64_t(now.blocks - before.blocks),
          std::int64_t(now.bytes - before.bytes)};
}

void HeapCounts::count(SizeKind kind, const Counts& held) noexcept {
  const Layout& own = layout(kind);
  const Counted now{{own.totals().split_free_blocks, own.totals().split_free_bytes},
                    own.splitFreeRises()};
  const Counted before = std::exchange(counted_[std::size_t(kind)], now);
  const Counts taken = held.blocks > 0 ? held : Counts{};
  totals_.count(kind, held + difference(now.now, before.now),
                taken + difference(now.rises, before.rises));
}

void HeapCounts::countBacking(SizeKind kind, std::uint64_t bytes, int sign, bool real) noexcept {
  BackingCount& own = backing_[std::size_t(kind)];
  own.pieces += std::uint64_t(sign);
  own.bytes += std::uint64_t(sign) * bytes;
  if (real) totals_.countBacking(kind, sign, sign * std::int64_t(bytes));
}

StatArray HeapCounts::usage(SizeKind kind) const {
  const Layout& own = layout(kind);
  StatArray all{};
  for (const Segment* s = own.segments(); s; s = s->next) {
    for (const Block* b = s->first; b; b = b->next) {
      if (b->state() != BlockState::kAllocated) continue;
      at(all, Stat::kAllocation) += 1;
      at(all, Stat::kAllocatedBytes) += std::int64_t(b->bytes());
      at(all, Stat::kRequestedBytes) += std::int64_t(ownership::requested(*b));
    }
  }
  at(all, Stat::kActive) = std::int64_t(own.totals().busy_blocks);
  at(all, Stat::kActiveBytes) = std::int64_t(own.totals().busy_bytes);
  at(all, Stat::kInactiveSplit) = std::int64_t(own.totals().split_free_blocks);
  at(all, Stat::kInactiveSplitBytes) = std::int64_t(own.totals().split_free_bytes);
  at(all, Stat::kSegment) = std::int64_t(backing_[std::size_t(kind)].pieces);
  at(all, Stat::kReservedBytes) = std::int64_t(backing_[std::size_t(kind)].bytes);
  return all;
}

void HeapCounts::audit(SizeKind kind) const {
  const Layout& own = layout(kind);
  const Layout::SplitFree& counted = counted_[std::size_t(kind)].now;
  CISTERN_CHECK(counted.blocks == own.totals().split_free_blocks);
  CISTERN_CHECK(counted.bytes == own.totals().split_free_bytes);
  CISTERN_CHECK(backing_[std::size_t(kind)].bytes >= own.totals().segment_bytes);
}

}  // namespace cistern
