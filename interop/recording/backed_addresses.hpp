// Which addresses have device memory behind them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "allocator/base/range_map.hpp"

namespace cistern::recording {

/// Reserved addresses from begin to end, of one segment or of pages in one.
struct Reserved {
  std::uint64_t begin = 0, end = 0;
  std::uint32_t stream = 0;
  std::uint32_t pool = 0;
  bool expandable = false;
};

/// The end of so many bytes, or the last address if they reach beyond it.
inline std::uint64_t endOf(std::uint64_t begin, std::uint64_t bytes) {
  return begin + std::min(bytes, std::numeric_limits<std::uint64_t>::max() - begin);
}

using ReservedRanges = RangeMap<Reserved>;

}  // namespace cistern::recording
