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

/// What one of two kinds gets of room that is for both: most of it, for the other gets by with what
/// it has until it asks.
std::int64_t shareOf(std::int64_t room, std::int64_t needed) {
  return std::max(std::min(room, needed), room - room / 4);
}

/// One kind of a heap, as it is now.
struct Kind {
  HitCounts& counts;
  const Layout& layout;

  template <Stat kStat>
  std::int64_t now() const {
    if constexpr (kStat == Stat::kAllocation) return now<Stat::kActive>() - counts.pending.blocks;
    if constexpr (kStat == Stat::kAllocatedBytes)
      return now<Stat::kActiveBytes>() - counts.pending.bytes;
    if constexpr (kStat == Stat::kRequestedBytes) return counts.requested;
    if constexpr (kStat == Stat::kActive) return signedBytes(layout.busyBlocks());
    if constexpr (kStat == Stat::kActiveBytes) return signedBytes(layout.busyBytes());
    if constexpr (kStat == Stat::kInactiveSplit) return signedBytes(layout.splitFreeBlocks());
    if constexpr (kStat == Stat::kInactiveSplitBytes) return signedBytes(layout.splitFreeBytes());
  }
};

/// Deals the limits of two kinds out of what their heap's ceilings leave: each of the five apart
/// from the others.
class Dealer {
 public:
  Dealer(const HeapCounters& counters, SizeKind kind, Kind mine, Kind others)
      : counters_(counters), kind_(kind), mine_(mine), others_(others) {}

  void all() {
    blocks(0), bytes(0), requested(0);
    deal<&HitCounts::split_limit, &SplitTally::blocks, Stat::kInactiveSplit>(0);
    deal<&HitCounts::split_limit, &SplitTally::bytes, Stat::kInactiveSplitBytes>(0);
  }
  /// Those that what there is has passed. False when a ceiling is in the way.
  bool passed() {
    bool within = true;
    const auto look = [&](std::int64_t limit, std::int64_t now, auto dealt) {
      if (limit < now) within &= dealt();
    };
    const HitCounts& c = mine_.counts;
    look(c.limit.blocks, mine_.now<Stat::kActive>(), [this] { return blocks(0); });
    look(c.limit.bytes, mine_.now<Stat::kActiveBytes>(), [this] { return bytes(0); });
    look(c.limit.requested, c.requested, [this] { return requested(0); });
    look(c.split_limit.blocks, mine_.now<Stat::kInactiveSplit>(), [this] {
      return deal<&HitCounts::split_limit, &SplitTally::blocks, Stat::kInactiveSplit>(0);
    });
    look(c.split_limit.bytes, mine_.now<Stat::kInactiveSplitBytes>(), [this] {
      return deal<&HitCounts::split_limit, &SplitTally::bytes, Stat::kInactiveSplitBytes>(0);
    });
    return within;
  }
  /// Those that leave less than is needed.
  Tally slack(const Tally& needed) {
    Tally left = leftOver();
    if (left.blocks < needed.blocks) blocks(needed.blocks);
    if (left.bytes < needed.bytes) bytes(needed.bytes);
    if (left.requested < needed.requested) requested(needed.requested);
    return leftOver();
  }
  Tally leftOver() const {
    Tally left = mine_.counts.limit;
    left -= {mine_.now<Stat::kActive>(), mine_.now<Stat::kActiveBytes>(), mine_.counts.requested};
    return left;
  }

 private:
  bool blocks(std::int64_t need) {
    return deal<&HitCounts::limit, &Tally::blocks, Stat::kActive, Stat::kAllocation>(need);
  }
  bool bytes(std::int64_t need) {
    return deal<&HitCounts::limit, &Tally::bytes, Stat::kActiveBytes, Stat::kAllocatedBytes>(need);
  }
  bool requested(std::int64_t need) {
    return deal<&HitCounts::limit, &Tally::requested, Stat::kRequestedBytes>(need);
  }

  /// One of the five, which is of the first statistic, and below the ceilings of all of them.
  template <auto kLimits, auto kLimit, Stat kFirst, Stat... kMore>
  bool deal(std::int64_t need) {
    const Room room = roomBelow<kFirst, kMore...>();
    const std::int64_t mine = std::min(room.own, shareOf(room.both, need));
    mine_.counts.*kLimits.*kLimit = mine_.now<kFirst>() + mine;
    others_.counts.*kLimits.*kLimit =
        others_.now<kFirst>() + std::min(room.other, room.both - mine);
    return mine >= 0;
  }

  /// The least of these statistics.
  template <Stat... kStats>
  Room roomBelow() const {
    const auto own = std::size_t(kind_), other = 1 - own;
    Room least;
    const auto look = [&](std::size_t s, std::int64_t now, std::int64_t other_now) {
      least.own = std::min(least.own, counters_.ceiling[own][s] - now);
      least.other = std::min(least.other, counters_.ceiling[other][s] - other_now);
      least.both = std::min(least.both, counters_.ceiling[kSizeKindCount][s] - now - other_now);
    };
    (look(std::size_t(kStats), mine_.now<kStats>(), others_.now<kStats>()), ...);
    return least;
  }

  const HeapCounters& counters_;
  const SizeKind kind_;
  const Kind mine_, others_;
};

SizeKind otherThan(SizeKind kind) {
  return kind == SizeKind::kSmall ? SizeKind::kLarge : SizeKind::kSmall;
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

// What has passed no limit has passed no ceiling; so that it is enough to look at what has.
bool Heap::overCeilingNow(SizeKind kind) noexcept {
  noteChange();
  const SizeKind other = otherThan(kind);
  Dealer dealer(counters_, kind, {hits(kind), layout(kind)}, {hits(other), layout(other)});
  if (!hits(kind).forgotten() && dealer.passed()) return false;
  const HeapCounters& now = counters();
  if (now.overCeiling(kind)) return true;
  if (!now.overCeiling(other)) dealer.all();  // else who asks for that kind has to learn of it
  return false;
}

// Limits say nothing of segments and reserved bytes; but they are forgotten when those change.
bool Heap::overAnyCeiling() noexcept {
  if (withinLimits(SizeKind::kSmall) && withinLimits(SizeKind::kLarge)) return false;
  const HeapCounters& now = counters();
  if (now.overCeiling(SizeKind::kSmall) || now.overCeiling(SizeKind::kLarge)) return true;
  Dealer(counters_, SizeKind::kSmall, {hits(SizeKind::kSmall), layout(SizeKind::kSmall)},
         {hits(SizeKind::kLarge), layout(SizeKind::kLarge)})
      .all();
  return false;
}

Tally Heap::slack(SizeKind kind, const Tally& needed) noexcept {
  const SizeKind other = otherThan(kind);
  Dealer dealer(counters_, kind, {hits(kind), layout(kind)}, {hits(other), layout(other)});
  if (overCeiling(kind)) return {};
  return dealer.slack(needed);
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
  if (!taken.isZero() || requested != 0) noteChange();
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
  noteChange();
  const SizeKind kind = segmentOf(block).kind;
  hits(kind).requested -= signedBytes(holding::requested(block));
  layout(kind).retire(block);
  countPending(kind, block, +1);
  const std::unique_ptr<StreamUses> noted(static_cast<StreamUses*>(block.use.uses));
  block.use.uses = nullptr;
  StreamUses uses = noted ? std::move(*noted) : StreamUses{};
  if (block.use.stream != stream()) uses.add(block.use.stream);
  return uses;
}

void Heap::reissue(Block& block, const Request& request) noexcept {
  noteChange();
  const SizeKind kind = segmentOf(block).kind;
  layout(kind).reissue(block);
  countPending(kind, block, -1);
  begin(block, request);
  countActive(kind, block, -1);  // it was that before
}

void Heap::setAside(Block& free) noexcept {
  noteChange();
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
  noteChange();
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
