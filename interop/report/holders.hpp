// The holders of memory at one moment: blocks of one stack, label, pool and stream, together.
#pragma once

#include <cstdint>
#include <vector>

#include "interop/report/living.hpp"

namespace cistern::report {

struct Holder {
  std::uint32_t stack = 0, label = 0, pool = 0, stream = 0;
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;    ///< asked for, together
  std::uint64_t largest = 0;  ///< bytes of the largest block
};

/// Most bytes first.
std::vector<Holder> holdersOf(const std::vector<Life>& lives, const Living& living);

}  // namespace cistern::report
