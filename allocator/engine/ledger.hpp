// What all heaps have together: their peaks, and the ceilings that heaps may go up to without
// asking (statistics.hpp says what both are). Knows counts only, no heap and no lock.
#pragma once

#include <vector>

#include "allocator/engine/statistics.hpp"

namespace cistern {

/// Of all heaps, brought up to date: one by one, and of those that rest (active_heaps.hpp) what
/// they have together; null for none.
struct AllCounters : std::vector<HeapCounters*> {
  const HeapCounters* resting = nullptr;
};

/// The recorded peaks, and what the accumulated counts started from. Guarded by the settlement
/// lock.
struct StatLedger {
  std::array<StatArray, kSizeKindCount + 1> peak{};
  bool exact = true;  ///< the sum of the ceilings is at most the peak
  std::array<StatArray, kSizeKindCount + 1> allocated_base{};
  std::array<StatArray, kSizeKindCount + 1> freed_base{};
};

/// Small, large, both.
inline constexpr std::size_t kLedgerKinds = kSizeKindCount + 1;

/// Raises the peaks to the present totals, and deals what lies between the totals and their peaks
/// out as ceilings. Pre: there is a heap.
void dealCeilings(const AllCounters& all, StatLedger& ledger) noexcept;

/// The statistics of one of the ledger's kinds.
MemoryStats::Values valuesOf(const AllCounters& all, const StatLedger& ledger, std::size_t kind);

/// What was allocated and freed until now counts no longer.
void startAccumulating(const AllCounters& all, StatLedger& ledger) noexcept;

}  // namespace cistern
