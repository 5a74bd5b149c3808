// How a heap's statistics are brought up to date, and what a hit is measured by: heap_counts.hpp,
// statistics.hpp. Blocks that are busy without being the program's come and go here too.
#include "allocator/engine/heap_counts.hpp"

#include <memory>

#include "allocator/base/check.hpp"
#include "allocator/engine/heap.hpp"

namespace cistern {
namespace {

constexpr std::int64_t signedBytes(std::uint64_t bytes) { return std::int64_t(bytes); }

/// Room below the ceilings of one kind, of the other, and of both.
struct Room {
  std::int64_t own = INT64_MAX, other = INT64_MAX, both = INT64_MAX;
};

/// The least of these statistics.
template <Stat... kStats>
Room roomBelow(const HeapCounters& counters, SizeKind kind) {
  const auto own = std::size_t(kind), other = 1 - own;
  Room least;
  const auto look = [&](std::size_t s) {
    const std::int64_t now = counters.current[own][s], other_now = counters.current[other][s];
    least.own = std::min(least.own, counters.ceiling[own][s] - now);
    least.other = std::min(least.other, counters.ceiling[other][s] - other_now);
    least.both = std::min(least.both, counters.ceiling[kSizeKindCount][s] - now - other_now);
  };
  (look(std::size_t(kStats)), ...);
  return least;
}

/// What one of two kinds gets of room that is for both: most of it, for the other gets by with what
/// it has until it asks.
std::int64_t shareOf(std::int64_t room, std::int64_t needed) {
  return std::max(std::min(room, needed), room - room / 4);
}

}  // namespace

HeapCounters& Heap::counters() noexcept {
  bringUpToDate(SizeKind::kSmall);
  bringUpToDate(SizeKind::kLarge);
  forgetLimits();
  return counters_;
}

void Heap::forgetLimits() noexcept {
  for (HitCounts& counts : hits_) counts.forgetLimits();
}

void Heap::bringUpToDate(SizeKind kind) noexcept {
  HitCounts& counts = hits(kind);
  const Layout& own = layout(kind);
  const auto count = [&](Stat stat, std::int64_t now, std::int64_t more) CISTERN_NO_TSA {
    counters_.current[std::size_t(kind)][std::size_t(stat)] = now;
    counters_.allocated[std::size_t(kind)][std::size_t(stat)] += more;
  };
  const std::int64_t blocks = signedBytes(own.busyBlocks()), bytes = signedBytes(own.busyBytes());
  count(Stat::kAllocation, blocks - counts.pending.blocks, counts.taken.blocks);
  count(Stat::kAllocatedBytes, bytes - counts.pending.bytes, counts.taken.bytes);
  count(Stat::kRequestedBytes, counts.requested, counts.taken.requested);
  count(Stat::kActive, blocks, counts.taken.blocks);
  count(Stat::kActiveBytes, bytes, counts.taken.bytes);
  const SplitTally rises{signedBytes(own.splitFreeRises().blocks),
                         signedBytes(own.splitFreeRises().bytes)};
  count(Stat::kInactiveSplit, signedBytes(own.splitFreeBlocks()),
        rises.blocks - counts.rises.blocks);
  count(Stat::kInactiveSplitBytes, signedBytes(own.splitFreeBytes()),
        rises.bytes - counts.rises.bytes);
  counts.taken = {};
  counts.rises = rises;
}

bool Heap::overCeilingNow(SizeKind kind) noexcept {
  if (counters().overCeiling(kind)) return true;
  dealLimits(kind, {});
  return false;
}

// Pre: the counters are up to date, and this kind has passed no ceiling.
void Heap::dealLimits(SizeKind kind, const Tally& needed) noexcept {
  const auto deal = [](const Room& room, std::int64_t need, std::int64_t now, std::int64_t& limit,
                       std::int64_t other_now, std::int64_t& other_limit) {
    const std::int64_t mine = std::min(room.own, shareOf(room.both, need));
    limit = now + mine;
    other_limit = other_now + std::min(room.other, room.both - mine);
  };
  const SizeKind other = kind == SizeKind::kSmall ? SizeKind::kLarge : SizeKind::kSmall;
  HitCounts &a = hits(kind), &b = hits(other);
  const Layout &la = layout(kind), &lb = layout(other);
  deal(roomBelow<Stat::kAllocation, Stat::kActive>(counters_, kind), needed.blocks,
       signedBytes(la.busyBlocks()), a.limit.blocks, signedBytes(lb.busyBlocks()), b.limit.blocks);
  deal(roomBelow<Stat::kAllocatedBytes, Stat::kActiveBytes>(counters_, kind), needed.bytes,
       signedBytes(la.busyBytes()), a.limit.bytes, signedBytes(lb.busyBytes()), b.limit.bytes);
  deal(roomBelow<Stat::kRequestedBytes>(counters_, kind), needed.requested, a.requested,
       a.limit.requested, b.requested, b.limit.requested);
  deal(roomBelow<Stat::kInactiveSplit>(counters_, kind), 0, signedBytes(la.splitFreeBlocks()),
       a.split_limit.blocks, signedBytes(lb.splitFreeBlocks()), b.split_limit.blocks);
  deal(roomBelow<Stat::kInactiveSplitBytes>(counters_, kind), 0, signedBytes(la.splitFreeBytes()),
       a.split_limit.bytes, signedBytes(lb.splitFreeBytes()), b.split_limit.bytes);
}

Tally Heap::slack(SizeKind kind, const Tally& needed) noexcept {
  HitCounts& counts = hits(kind);
  const Layout& own = layout(kind);
  const auto left = [&]() CISTERN_NO_TSA {
    Tally slack = counts.limit;
    slack -= {signedBytes(own.busyBlocks()), signedBytes(own.busyBytes()), counts.requested};
    return slack;
  };
  if (withinLimits(kind)) [[likely]] {
    const Tally slack = left();
    if (slack.covers(needed)) return slack;
  }
  if (counters().overCeiling(kind)) return {};
  dealLimits(kind, needed);
  return left();
}

void Heap::raiseCeilings(SizeKind kind, const Tally& by) noexcept {
  for (StatArray* ceiling :
       {&counters_.ceiling[std::size_t(kind)], &counters_.ceiling[kSizeKindCount]}) {
    (*ceiling)[std::size_t(Stat::kAllocation)] += by.blocks;
    (*ceiling)[std::size_t(Stat::kActive)] += by.blocks;
    (*ceiling)[std::size_t(Stat::kAllocatedBytes)] += by.bytes;
    (*ceiling)[std::size_t(Stat::kActiveBytes)] += by.bytes;
    (*ceiling)[std::size_t(Stat::kRequestedBytes)] += by.requested;
  }
  hits(kind).limit += by;
}

void Heap::countTaken(SizeKind kind, const Tally& taken, std::int64_t requested) noexcept {
  HitCounts& counts = hits(kind);
  counts.taken += taken;
  counts.requested += requested;
  raiseCeilings(kind, {0, 0, requested});
}

// ---- Busy, but not the program's ----------------------------------------------------------------

// The limits are of all that is busy, and are kept such that they hold for what the program has of
// it too: limit - pending does not grow.
void Heap::countPending(SizeKind kind, const Block& block, int sign) noexcept {
  HitCounts& counts = hits(kind);
  const Tally by{sign, sign * signedBytes(block.bytes()), 0};
  counts.pending += by;
  if (sign < 0) counts.limit += by;
}

StreamUses Heap::retire(Block& block) noexcept {
  const SizeKind kind = segmentOf(block).kind;
  hits(kind).requested -= signedBytes(holding::requested(block));
  layout(kind).retire(block);
  countPending(kind, block, +1);
  const std::unique_ptr<StreamUses> noted(static_cast<StreamUses*>(block.use.uses));
  block.use.uses = nullptr;
  StreamUses uses = noted ? std::move(*noted) : StreamUses{};
  if (block.use.stream != stream()) uses.push_back(block.use.stream);
  return uses;
}

void Heap::reissue(Block& block, const Request& request) noexcept {
  const SizeKind kind = segmentOf(block).kind;
  layout(kind).reissue(block);
  countPending(kind, block, -1);
  begin(block, request);
  countActive(kind, block, -1);  // it was that before
}

void Heap::setAside(Block& free) noexcept {
  const SizeKind kind = segmentOf(free).kind;
  layout(kind).setAside(free);
  free.use = holding::heapsOwn(0, stream());
  free.epoch = 0;
  countPending(kind, free, +1);
  countActive(kind, free, +1);
  forgetLimits();  // nobody asks now whether a ceiling is passed: whoever does next, of any kind
}

void Heap::countActive(SizeKind kind, const Block& block, int sign) noexcept {
  StatArray& allocated = counters_.allocated[std::size_t(kind)];
  allocated[std::size_t(Stat::kActive)] += sign;
  allocated[std::size_t(Stat::kActiveBytes)] += sign * signedBytes(block.bytes());
}

// ---- Memory -------------------------------------------------------------------------------------

void Heap::countBacking(SizeKind kind, std::uint64_t bytes, int sign, bool real) {
  const auto count = [&](Stat stat, std::int64_t by) CISTERN_NO_TSA {
    real ? counters_.change(kind, stat, by) : counters_.move(kind, stat, by);
  };
  count(Stat::kSegment, sign);
  count(Stat::kReservedBytes, sign * signedBytes(bytes));
  forgetLimits();  // none of them is of these two
}

void Heap::auditCounts(SizeKind kind) {
  const HitCounts& counts = hits(kind);
  const Layout& own = layout(kind);
  Tally pending;
  std::int64_t requested = 0;
  for (const Segment* s = own.segments(); s; s = s->next) {
    for (const Block* b = s->first; b; b = b->next) {
      if (b->state() == BlockState::kPending) pending.add(b->bytes(), 0);
      if (b->state() == BlockState::kAllocated) requested += signedBytes(holding::requested(*b));
    }
  }
  CISTERN_CHECK(pending.blocks == counts.pending.blocks && pending.bytes == counts.pending.bytes);
  CISTERN_CHECK(requested == counts.requested);
  // Pages that the device would not take back are counted too.
  const StatArray& now = counters_.current[std::size_t(kind)];
  CISTERN_CHECK(now[std::size_t(Stat::kReservedBytes)] >= signedBytes(own.segmentBytes()));
}

}  // namespace cistern
