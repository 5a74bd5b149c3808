// The sums that threads publish to, under the lock. See totals.hpp.
#include <algorithm>

#include "allocator/engine/statistics/totals.hpp"

namespace cistern {

void Totals::add(std::size_t kind, const Counts& by, const Counts& taken) noexcept {
  for (const std::size_t of : {kind, kBoth}) {
    by.addTo(now_[of]);
    if (taken.any()) taken.addTo(taken_[of]);
  }
}

void Totals::raisePeaks() noexcept {
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    for (std::size_t stat = 0; stat < kStatCount; ++stat)
      peak_[kind][stat] = std::max(peak_[kind][stat], now_[kind][stat]);
  }
}

// What threads have not published says nothing of these two.
void Totals::raisePeaksOfBacking() noexcept {
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    for (const Stat stat : {Stat::kSegment, Stat::kReservedBytes})
      at(peak_[kind], stat) = std::max(at(peak_[kind], stat), at(now_[kind], stat));
  }
}

// How far what hits change is below its peaks.
Counts Totals::room(std::size_t kind) const noexcept {
  const auto below = [&](Stat stat) {
    mutex_.assertHeld();
    return at(peak_[kind], stat) - at(now_[kind], stat);
  };
  return {std::min(below(Stat::kAllocation), below(Stat::kActive)),
          std::min(below(Stat::kAllocatedBytes), below(Stat::kActiveBytes)),
          below(Stat::kRequestedBytes), below(Stat::kInactiveSplit),
          below(Stat::kInactiveSplitBytes)};
}

MemoryStats::Values Totals::valuesOf(std::size_t kind) const noexcept {
  MemoryStats::Values values;
  for (std::size_t stat = 0; stat < kStatCount; ++stat) {
    const std::int64_t now = now_[kind][stat], taken = taken_[kind][stat];
    values[stat] = {now, peak_[kind][stat], taken - taken_before_[kind][stat],
                    taken - now - given_before_[kind][stat]};
  }
  return values;
}

// ---- Memory of the device -----------------------------------------------------------------------

void Totals::addBacking(SizeKind kind, std::int64_t segments, std::int64_t bytes,
                        bool taken) noexcept {
  for (const std::size_t of : {std::size_t(kind), kBoth}) {
    at(now_[of], Stat::kSegment) += segments, at(now_[of], Stat::kReservedBytes) += bytes;
    if (!taken) continue;
    at(taken_[of], Stat::kSegment) += segments, at(taken_[of], Stat::kReservedBytes) += bytes;
  }
}

void Totals::countBacking(SizeKind kind, std::int64_t segments, std::int64_t bytes,
                          bool refused) noexcept {
  const MutexLock lock(mutex_);
  addBacking(kind, segments, bytes, segments > 0 && !refused);
  raisePeaksOfBacking();
}

void Totals::moveBacking(SizeKind from, SizeKind to, std::uint64_t bytes) noexcept {
  if (from == to) return;
  const MutexLock lock(mutex_);
  addBacking(from, -1, -std::int64_t(bytes), false);
  addBacking(to, 1, std::int64_t(bytes), false);
  raisePeaksOfBacking();
}

}  // namespace cistern
