// What all threads have published, of small sizes, large ones, and both: what there is, its peaks,
// and what was taken since somebody last asked to begin anew. No lock of its own.
//
//   now[both] == now[small] + now[large], taken likewise;  now <= peak after raisePeaks()
#pragma once

#include <algorithm>
#include <array>

#include "allocator/engine/statistics/counts.hpp"
#include "cistern/statistics.hpp"

namespace cistern {

class StatSums {
 public:
  static constexpr std::size_t kBoth = kSizeKindCount;

  void add(std::size_t kind, Stat stat, std::int64_t by, bool taken) {
    for (const std::size_t of : {kind, kBoth}) {
      at(now_[of], stat) += by;
      if (taken) at(taken_[of], stat) += by;
    }
  }
  void add(std::size_t kind, const Counts& by, const Counts& taken) {
    addTo(now_, kind, by);
    if (taken.any()) addTo(taken_, kind, taken);
  }
  void raisePeak(Stat stat) {
    for (std::size_t kind = 0; kind <= kBoth; ++kind)
      at(peak_[kind], stat) = std::max(at(peak_[kind], stat), at(now_[kind], stat));
  }
  void raisePeaks() {
    for (std::size_t stat = 0; stat < kStatCount; ++stat) raisePeak(Stat(stat));
  }
  /// To nothing: until they are raised.
  void resetPeaks() { peak_ = {}; }
  void resetTaken() {
    taken_ = {};
    before_ = now_;
  }

  std::int64_t peak(Stat stat) const { return at(peak_[kBoth], stat); }
  /// How far what hits change is below its peaks.
  Counts room(std::size_t kind) const {
    const auto below = [&](Stat stat) { return at(peak_[kind], stat) - at(now_[kind], stat); };
    return {std::min(below(Stat::kAllocation), below(Stat::kActive)),
            std::min(below(Stat::kAllocatedBytes), below(Stat::kActiveBytes)),
            below(Stat::kRequestedBytes), below(Stat::kInactiveSplit),
            below(Stat::kInactiveSplitBytes)};
  }
  MemoryStats::Values valuesOf(std::size_t kind) const {
    MemoryStats::Values values;
    for (std::size_t stat = 0; stat < kStatCount; ++stat) {
      const std::int64_t now = now_[kind][stat], taken = taken_[kind][stat];
      values[stat] = {now, peak_[kind][stat], taken, taken - (now - before_[kind][stat])};
    }
    return values;
  }

 private:
  using PerKind = std::array<StatArray, kSizeKindCount + 1>;

  static void addTo(PerKind& sums, std::size_t kind, const Counts& by) {
    const StatArray more = by.asStats();
    for (const std::size_t of : {kind, kBoth}) {
      for (std::size_t stat = 0; stat < kStatCount; ++stat) sums[of][stat] += more[stat];
    }
  }

  PerKind now_{}, peak_{};
  PerKind taken_{};   ///< since resetTaken
  PerKind before_{};  ///< what there was then
};

}  // namespace cistern
