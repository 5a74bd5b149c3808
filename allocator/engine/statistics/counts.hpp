// What a verb changes of the statistics, as numbers that can be added.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

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
  Counts& operator+=(const Counts& other) {
    blocks += other.blocks, bytes += other.bytes, requested += other.requested;
    split_blocks += other.split_blocks, split_bytes += other.split_bytes;
    return *this;
  }
  Counts& operator-=(const Counts& other) { return *this += -other; }
  Counts operator-() const { return {-blocks, -bytes, -requested, -split_blocks, -split_bytes}; }
  friend Counts operator+(Counts a, const Counts& b) { return a += b; }
  friend Counts operator-(Counts a, const Counts& b) { return a -= b; }
  /// What the program holds is active.
  void addTo(StatArray& all) const {
    at(all, Stat::kAllocation) += blocks, at(all, Stat::kActive) += blocks;
    at(all, Stat::kAllocatedBytes) += bytes, at(all, Stat::kActiveBytes) += bytes;
    at(all, Stat::kRequestedBytes) += requested;
    at(all, Stat::kInactiveSplit) += split_blocks,
        at(all, Stat::kInactiveSplitBytes) += split_bytes;
  }
  Counts half() const {
    return {blocks / 2, bytes / 2, requested / 2, split_blocks / 2, split_bytes / 2};
  }
  bool anyNegative() const { return (blocks | bytes | requested | split_blocks | split_bytes) < 0; }
  bool any() const { return (blocks | bytes | requested | split_blocks | split_bytes) != 0; }
  /// Each the smaller, or the larger, of the two.
  friend Counts least(const Counts& a, const Counts& b) {
    return {std::min(a.blocks, b.blocks), std::min(a.bytes, b.bytes),
            std::min(a.requested, b.requested), std::min(a.split_blocks, b.split_blocks),
            std::min(a.split_bytes, b.split_bytes)};
  }
  friend Counts most(const Counts& a, const Counts& b) { return -least(-a, -b); }
};

}  // namespace cistern
