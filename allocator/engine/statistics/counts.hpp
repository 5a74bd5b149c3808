// A verb's changes of the statistics, as numbers that can be added.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "cistern/statistics.hpp"

namespace cistern {

/// One number for each statistic.
using StatArray = std::array<std::int64_t, kStatCount>;
inline std::int64_t& at(StatArray& all, Stat stat) { return all[std::size_t(stat)]; }
inline std::int64_t at(const StatArray& all, Stat stat) { return all[std::size_t(stat)]; }

struct Counts {
  std::int64_t blocks = 0;        ///< that the program holds
  std::int64_t bytes = 0;         ///< of those blocks, rounding included
  std::int64_t requested = 0;     ///< bytes that the program asked for in them
  std::int64_t split_blocks = 0;  ///< free blocks of segments that are not wholly free
  std::int64_t split_bytes = 0;

  static Counts block(std::uint64_t bytes, std::uint64_t requested, int sign) {
    return {sign, sign * std::int64_t(bytes), sign * std::int64_t(requested)};
  }
  /// Applies the operation to each number of the one and that of the other.
  template <class Operation>
  friend Counts each(const Counts& a, const Counts& b, Operation of) {
    return {of(a.blocks, b.blocks), of(a.bytes, b.bytes), of(a.requested, b.requested),
            of(a.split_blocks, b.split_blocks), of(a.split_bytes, b.split_bytes)};
  }
  friend Counts operator+(const Counts& a, const Counts& b) { return each(a, b, std::plus()); }
  friend Counts operator-(const Counts& a, const Counts& b) { return each(a, b, std::minus()); }
  friend Counts half(const Counts& of) {
    return each(of, of, [](std::int64_t x, std::int64_t) { return x / 2; });
  }
  friend Counts least(const Counts& a, const Counts& b) {
    return each(a, b, [](std::int64_t x, std::int64_t y) { return std::min(x, y); });
  }
  bool anyNegative() const { return (blocks | bytes | requested | split_blocks | split_bytes) < 0; }
  bool any() const { return (blocks | bytes | requested | split_blocks | split_bytes) != 0; }
  /// As statistics: what the program holds is active.
  StatArray asStats() const {
    StatArray all{};
    at(all, Stat::kAllocation) = at(all, Stat::kActive) = blocks;
    at(all, Stat::kAllocatedBytes) = at(all, Stat::kActiveBytes) = bytes;
    at(all, Stat::kRequestedBytes) = requested;
    at(all, Stat::kInactiveSplit) = split_blocks;
    at(all, Stat::kInactiveSplitBytes) = split_bytes;
    return all;
  }
};

/// The sums that all threads have published, of small sizes, large ones, and both. They are the
/// present values, their peaks, and what was taken since somebody last reset that count. One peak
/// more is that of active bytes since somebody took it. No lock of its own.
///
///   now[both] == now[small] + now[large], taken likewise;  now <= peak after raisePeaks(), and
///   active bytes <= the peak to take
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
    if (stat == Stat::kActiveBytes) peak_to_take_ = std::max(peak_to_take_, active());
  }
  void raisePeaks() {
    for (std::size_t stat = 0; stat < kStatCount; ++stat) raisePeak(Stat(stat));
  }
  /// Sets the peaks to what there is now.
  void resetPeaks() { peak_ = now_; }
  /// The most bytes that were active since it was called last.
  std::int64_t takePeak() { return std::exchange(peak_to_take_, active()); }
  void resetTaken() {
    taken_ = {};
    before_ = now_;
  }

  std::int64_t peak(Stat stat) const { return at(peak_[kBoth], stat); }
  /// How far what hits change is below its peaks.
  Counts room(std::size_t kind) const {
    const auto below = [&](Stat stat) { return at(peak_[kind], stat) - at(now_[kind], stat); };
    std::int64_t active_bytes = below(Stat::kActiveBytes);
    if (kind == kBoth) active_bytes = std::min(active_bytes, peak_to_take_ - active());
    return {std::min(below(Stat::kAllocation), below(Stat::kActive)),
            std::min(below(Stat::kAllocatedBytes), active_bytes), below(Stat::kRequestedBytes),
            below(Stat::kInactiveSplit), below(Stat::kInactiveSplitBytes)};
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

  std::int64_t active() const { return at(now_[kBoth], Stat::kActiveBytes); }

  static void addTo(PerKind& sums, std::size_t kind, const Counts& by) {
    const StatArray more = by.asStats();
    for (const std::size_t of : {kind, kBoth}) {
      for (std::size_t stat = 0; stat < kStatCount; ++stat) sums[of][stat] += more[stat];
    }
  }

  PerKind now_{}, peak_{};
  std::int64_t peak_to_take_ = 0;  ///< of active bytes, which resetPeaks leaves as it is
  PerKind taken_{};                ///< since resetTaken
  PerKind before_{};               ///< what there was then
};

}  // namespace cistern
