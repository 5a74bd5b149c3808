#include "allocator/engine/heap/counted_layout.hpp"

#include <utility>

#include "allocator/base/check.hpp"
#include "allocator/engine/cache/ownership.hpp"

namespace cistern {

static Counts difference(const Layout::SplitFree& now, const Layout::SplitFree& before) {
  return {0, 0, 0, std::int64_t(now.blocks - before.blocks),
          std::int64_t(now.bytes - before.bytes)};
}

void CountedLayout::count(const Counts& held) noexcept {
  const SplitFree now{totals().split_free_blocks, totals().split_free_bytes};
  const SplitFree before = std::exchange(counted_, now);
  const SplitFree rises_before = std::exchange(counted_rises_, splitFreeRises());
  const Counts taken = held.blocks > 0 ? held : Counts{};
  statistics_.count(kind_, held + difference(now, before),
                    taken + difference(counted_rises_, rises_before));
}

void CountedLayout::countBacking(std::uint64_t bytes, int sign, bool real, bool refused) noexcept {
  pieces_ += std::uint64_t(sign);
  reserved_bytes_ += std::uint64_t(sign) * bytes;
  if (real) statistics_.countBacking(kind_, sign, sign * std::int64_t(bytes), refused);
}

StatArray CountedLayout::usage() const {
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

void CountedLayout::audit() const {
  Layout::audit();
  CISTERN_CHECK(counted_.blocks == totals().split_free_blocks);
  CISTERN_CHECK(counted_.bytes == totals().split_free_bytes);
  CISTERN_CHECK(reserved_bytes_ >= totals().segment_bytes);
}

}  // namespace cistern
