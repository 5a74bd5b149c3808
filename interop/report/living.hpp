// The blocks that are there at one moment of a recording.
#pragma once

#include <cstdint>
#include <vector>

#include "interop/recording/backing_changes.hpp"
#include "interop/report/lives.hpp"

namespace cistern::report {

/// Numbers of allocations, in their order.
struct Living {
  std::vector<std::uint32_t> held;     ///< that the program holds, with memory
  std::vector<std::uint32_t> pending;  ///< that it has freed, and other streams still use
  std::vector<std::uint32_t> asleep;   ///< that it holds, without memory
};

/// The blocks after the first `done` events. Looks at each allocation born by then, and at each of
/// `sleeps` by then.
Living livingAfter(const std::vector<Life>& lives, std::uint64_t done,
                   const std::vector<recording::BackingChange>& sleeps = {});

/// The bytes asked for by blocks that the program holds: of those with memory, and of the others.
std::uint64_t askedBytes(const std::vector<Life>& lives, const Living& living);
std::uint64_t asleepBytes(const std::vector<Life>& lives, const Living& living);
/// The bytes that all blocks take, pending ones too.
std::uint64_t takenBytes(const std::vector<Life>& lives, const Living& living);

}  // namespace cistern::report
