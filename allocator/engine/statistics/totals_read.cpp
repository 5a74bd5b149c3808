// What is counted beside hits, and what is read of the sums. See totals.hpp.
#include <algorithm>

#include "allocator/engine/statistics/all_still.hpp"

namespace cistern {
namespace {

StatArray sum(StatArray a, const StatArray& b) {
  for (std::size_t stat = 0; stat < kStatCount; ++stat) a[stat] += b[stat];
  return a;
}

StatArray inOrder(const Counts& allocated, const Counts& active, std::int64_t segments,
                  std::int64_t reserved) {
  StatArray all{};
  const auto at = [&](Stat stat) -> std::int64_t& { return all[std::size_t(stat)]; };
  at(Stat::kAllocation) = allocated.blocks;
  at(Stat::kSegment) = segments;
  at(Stat::kActive) = active.blocks;
  at(Stat::kInactiveSplit) = allocated.split_blocks;
  at(Stat::kAllocatedBytes) = allocated.bytes;
  at(Stat::kReservedBytes) = reserved;
  at(Stat::kActiveBytes) = active.bytes;
  at(Stat::kInactiveSplitBytes) = allocated.split_bytes;
  at(Stat::kRequestedBytes) = allocated.requested;
  return all;
}

}  // namespace

// ---- What no hit changes ------------------------------------------------------------------------

// Rooms were dealt by what was active then. Only what becomes active anew may take it beyond.
void Totals::countPending(SizeKind kind, std::uint64_t bytes, int blocks, bool anew) noexcept {
  const Counts by{blocks, blocks * std::int64_t(bytes), 0};
  const MutexLock lock(mutex_);
  kinds_[std::size_t(kind)].pending += by;
  if (anew) kinds_[std::size_t(kind)].set_aside += by;
  if (blocks < 0) return;
  if (threads_.size() > 1) return raisePeaks();
  if (anew || mine() != nullptr) (void)AllStill(*this);
}

void Totals::countBacking(SizeKind kind, std::int64_t segments, std::int64_t bytes) noexcept {
  const MutexLock lock(mutex_);
  Kind& of = kinds_[std::size_t(kind)];
  of.segments += segments, of.reserved += bytes;
  if (segments < 0) return;
  of.segments_taken += segments, of.reserved_taken += bytes;
  raisePeaksOfBacking();
}

void Totals::countBack(SizeKind kind, std::uint64_t bytes) noexcept {
  const MutexLock lock(mutex_);
  kinds_[std::size_t(kind)].segments += 1;
  kinds_[std::size_t(kind)].reserved += std::int64_t(bytes);
  raisePeaksOfBacking();
}

void Totals::moveBacking(SizeKind from, SizeKind to, std::uint64_t bytes) noexcept {
  if (from == to) return;
  const MutexLock lock(mutex_);
  kinds_[std::size_t(from)].segments -= 1, kinds_[std::size_t(to)].segments += 1;
  kinds_[std::size_t(from)].reserved -= std::int64_t(bytes);
  kinds_[std::size_t(to)].reserved += std::int64_t(bytes);
  raisePeaksOfBacking();
}

// ---- Reading ------------------------------------------------------------------------------------

Totals::Reading Totals::read() noexcept {
  const MutexLock lock(mutex_);
  const AllStill still(*this);
  raisePeaks();
  return {valuesOf(kBoth), valuesOf(0), valuesOf(1), exact_};
}

MemoryStats::Values Totals::valuesOf(std::size_t kind) const noexcept {
  const StatArray current = now(kind), added = taken(kind);
  MemoryStats::Values values;
  for (std::size_t stat = 0; stat < kStatCount; ++stat) {
    values[stat] = {current[stat], peak_[kind][stat], added[stat] - taken_before_[kind][stat],
                    added[stat] - current[stat] - given_before_[kind][stat]};
  }
  return values;
}

void Totals::resetPeaks() noexcept {
  const MutexLock lock(mutex_);
  const AllStill still(*this);
  peak_ = {};
  exact_ = true;
}

void Totals::resetAccumulated() noexcept {
  const MutexLock lock(mutex_);
  const AllStill still(*this);
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const StatArray current = now(kind), added = taken(kind);
    for (std::size_t stat = 0; stat < kStatCount; ++stat) {
      taken_before_[kind][stat] = added[stat];
      given_before_[kind][stat] = added[stat] - current[stat];
    }
  }
}

std::size_t Totals::hostBytes() const noexcept {
  const MutexLock lock(mutex_);
  return threads_.size() * (sizeof(ThreadCounters) + sizeof(threads_[0]));
}

// ---- Sums ---------------------------------------------------------------------------------------

StatArray Totals::now(std::size_t kind) const noexcept {
  if (kind == kBoth) return sum(now(0), now(1));
  const Kind& of = kinds_[kind];
  return inOrder(of.now, of.now + of.pending, of.segments, of.reserved);
}

StatArray Totals::taken(std::size_t kind) const noexcept {
  if (kind == kBoth) return sum(taken(0), taken(1));
  const Kind& of = kinds_[kind];
  return inOrder(of.taken, of.taken + of.set_aside, of.segments_taken, of.reserved_taken);
}

void Totals::raisePeaks() noexcept {
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const StatArray current = now(kind);
    for (std::size_t stat = 0; stat < kStatCount; ++stat)
      peak_[kind][stat] = std::max(peak_[kind][stat], current[stat]);
  }
}

// What threads have not published says nothing of these two.
void Totals::raisePeaksOfBacking() noexcept {
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const StatArray current = now(kind);
    for (const Stat stat : {Stat::kSegment, Stat::kReservedBytes}) {
      std::int64_t& peak = peak_[kind][std::size_t(stat)];
      peak = std::max(peak, current[std::size_t(stat)]);
    }
  }
}

// How far what hits change is below its peaks.
Counts Totals::room(std::size_t kind) const noexcept {
  const StatArray current = now(kind);
  const auto below = [&](Stat stat) {
    mutex_.assertHeld();
    return peak_[kind][std::size_t(stat)] - current[std::size_t(stat)];
  };
  return {std::min(below(Stat::kAllocation), below(Stat::kActive)),
          std::min(below(Stat::kAllocatedBytes), below(Stat::kActiveBytes)),
          below(Stat::kRequestedBytes), below(Stat::kInactiveSplit),
          below(Stat::kInactiveSplitBytes)};
}

}  // namespace cistern
