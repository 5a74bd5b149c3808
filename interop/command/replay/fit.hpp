// The search behind --fit: the smallest capacity under which a trace is served.
#pragma once

#include <cstdint>
#include <functional>

#include "interop/command/replay/progress_bar.hpp"

namespace cistern::command {

/// Bisects between `requested`, below which nothing can serve the trace, and `enough`, which does.
/// Stops when they are within 0.25% of `requested`, and returns the smallest capacity that was seen
/// to serve. It assumes that a larger capacity serves everything that a smaller one does.
std::uint64_t leastCapacity(std::uint64_t requested, std::uint64_t enough,
                            const std::function<bool(std::uint64_t capacity)>& served,
                            const OnProgress& on_progress);

}  // namespace cistern::command
