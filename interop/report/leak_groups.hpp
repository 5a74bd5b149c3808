// Allocations in groups whose memory may leak: those of one stack and label. Where no stack is
// known, those of one label and size.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "interop/report/study.hpp"

namespace cistern::report {

/// The quarters of what was recorded, by event number: where the second, third and fourth begin,
/// and the end. They hold equally many steps if the program names at least eight moments, otherwise
/// equally many events. So idle time changes nothing.
struct Quarters {
  std::array<std::uint32_t, 3> begins{};
  std::uint32_t end = 0;
  bool in_steps = false;
};
Quarters quartersOf(const Study& study);

/// A group of allocations. A floor is the least that the group holds from some moment to the end:
/// memory that comes and goes step by step does not raise it. All in bytes.
/// Invariant: floors[0] <= floors[1] <= floors[2] <= end.
struct LeakGroup {
  std::uint32_t stack = 0, label = 0;
  std::uint64_t size = 0;                 ///< of each block, where no stack is known; else 0
  std::array<std::uint64_t, 3> floors{};  ///< from the second, third and fourth quarter on
  std::uint64_t end = 0;                  ///< held at the end
  std::uint64_t allocated = 0;            ///< from the second quarter on
  std::uint64_t freed = 0;                ///< from the second quarter on
};

struct LeakGroups {
  std::vector<LeakGroup> groups;
  std::vector<std::uint32_t> of;  ///< the group of each allocation, by its number
};

/// `by_size`: whether blocks without a stack are told apart by their size.
LeakGroups leakGroupsOf(const Study& study, const Quarters& quarters, bool by_size);

}  // namespace cistern::report
