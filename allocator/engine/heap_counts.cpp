#include "allocator/engine/heap_counts.hpp"

#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/engine/cache/ownership.hpp"

namespace cistern {

void HeapCounts::count(SizeKind kind, const Counts& held) noexcept {
  const Layout& own = layout(kind);
  const Layout::SplitFree& rises = own.splitFreeRises();
  const Counted now{Counts::split(own.splitFreeBlocks(), own.splitFreeBytes()),
                    Counts::split(rises.blocks, rises.bytes)};
  const Counted before = std::exchange(counted_[std::size_t(kind)], now);
  const Counts taken = held.blocks > 0 ? held : Counts{};
  totals_.count(kind, held + (now.now - before.now), taken + (now.rises - before.rises));
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
  const auto at = [&](Stat stat) -> std::int64_t& { return all[std::size_t(stat)]; };
  for (const Segment* s = own.segments(); s; s = s->next) {
    for (const Block* b = s->first; b; b = b->next) {
      if (b->state() != BlockState::kAllocated) continue;
      at(Stat::kAllocation) += 1;
      at(Stat::kAllocatedBytes) += std::int64_t(b->bytes());
      at(Stat::kRequestedBytes) += std::int64_t(ownership::requested(*b));
    }
  }
  at(Stat::kActive) = std::int64_t(own.busyBlocks());
  at(Stat::kActiveBytes) = std::int64_t(own.busyBytes());
  at(Stat::kInactiveSplit) = std::int64_t(own.splitFreeBlocks());
  at(Stat::kInactiveSplitBytes) = std::int64_t(own.splitFreeBytes());
  at(Stat::kSegment) = std::int64_t(backing_[std::size_t(kind)].pieces);
  at(Stat::kReservedBytes) = std::int64_t(backing_[std::size_t(kind)].bytes);
  return all;
}

void HeapCounts::audit(SizeKind kind) const {
  const Layout& own = layout(kind);
  const Counts& counted = counted_[std::size_t(kind)].now;
  CISTERN_CHECK(counted.split_blocks == std::int64_t(own.splitFreeBlocks()));
  CISTERN_CHECK(counted.split_bytes == std::int64_t(own.splitFreeBytes()));
  CISTERN_CHECK(backing_[std::size_t(kind)].bytes >= own.segmentBytes());
}

}  // namespace cistern
