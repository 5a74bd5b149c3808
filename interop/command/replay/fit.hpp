// The search behind --fit: the smallest capacity under which a trace is served.
#pragma once

#include <cstdint>
#include <functional>

#include "interop/command/replay/progress.hpp"

namespace cistern::command {

/// Bisects between `requested`, below which nothing can serve it, and `enough`, which does, until
/// they are within 0.25% of `requested`; returns the smallest capacity that was seen to serve. It
/// takes for granted that what a capacity serves, a larger one serves too.
std::uint64_t leastCapacity(std::uint64_t requested, std::uint64_t enough,
                            const std::function<bool(std::uint64_t capacity)>& served,
                            const OnProgress& on_progress);

}  // namespace cistern::command
