// The blocks of a recorded program as intervals of its events, and the bytes that live at once.
// Read next: iterations.hpp, bus_bound.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "interop/command/replay/script.hpp"

namespace cistern::command {

/// A block needs its memory after the events born … ended - 1, counted from 0. Other streams' uses
/// of a freed block count. Invariant: born < ended <= the number of events; bytes > 0.
struct Lifetime {
  std::uint64_t bytes = 0;  ///< as asked
  std::size_t born = 0;     ///< the event that allocates it
  std::size_t ended = 0;    ///< the event that ends it; the number of events if none does
};

/// The blocks of the script in the order of their births, without those of 0 bytes.
std::vector<Lifetime> lifetimesOf(const Script& script);

/// The bytes that live after each event.
std::vector<std::uint64_t> livingBytes(const Script& script);

/// The program's need: the most bytes that live at once. 0 without events.
inline std::uint64_t needOf(const std::vector<std::uint64_t>& living) {
  return living.empty() ? 0 : *std::max_element(living.begin(), living.end());
}

}  // namespace cistern::command
