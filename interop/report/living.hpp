// The blocks that are there at one moment of a recording.
#pragma once

#include <cstdint>
#include <vector>

#include "interop/report/lives.hpp"

namespace cistern::report {

/// Numbers of allocations, in their order.
struct Living {
  std::vector<std::uint32_t> held;     ///< that the program holds
  std::vector<std::uint32_t> pending;  ///< that it has freed, and other streams still use
};

/// The blocks after the first `done` events. Looks at each allocation born by then.
Living livingAfter(const std::vector<Life>& lives, std::uint64_t done);

/// The bytes asked for by blocks that the program holds.
std::uint64_t askedBytes(const std::vector<Life>& lives, const Living& living);
/// The bytes that all blocks take, pending ones too.
std::uint64_t takenBytes(const std::vector<Life>& lives, const Living& living);

}  // namespace cistern::report
