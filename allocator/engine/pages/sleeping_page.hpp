// Pages of pools that sleep. The backing's lock guards them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "allocator/engine/pages/page.hpp"

namespace cistern::pages {

/// A page that is not there, or whose addresses are vacant, until its pool wakes.
///
///   - `at` are the ranges that it was mapped at: the one that blocks lie in, and those that
///     somebody holds. There is no Mapping at any of them.
///   - `kept` is the physical page, if the device has not taken it back, or has made it for a wake
///     that did not come to its end. Then the heap counts it as reserved.
///   - A range can be mapped only while there is a physical page.
struct SleepingPage {
  Heap* heap = nullptr;  ///< that counted it
  SizeKind kind = SizeKind::kSmall;
  std::uint32_t units = 0;
  bool settled = false;
  std::vector<VacantRange> at;  ///< its home is the first; no element ever moves
  std::size_t current = 0;      ///< the one in `at` that blocks lie in
  std::optional<Page> kept;
  bool joined = false;  ///< it is a part of another from now on, and about to go

  std::uint64_t bytes() const { return units * kUnit; }
  VacantRange& currentRange() { return at[current]; }
  const VacantRange& currentRange() const { return at[current]; }
  Address deviceAddress() const { return currentRange().range->deviceOfUnit(currentRange().unit); }
  bool isHeld() const {
    for (const VacantRange& range : at) {
      if (range.holds.any()) return true;
    }
    return false;
  }
};

}  // namespace cistern::pages
