// A program whose frees come late and in another order, as they do under a garbage collector or if
// another thread frees.
#pragma once

#include <cstdint>

#include "interop/trace/trace.hpp"

namespace cistern::programs {

/// The same allocations in the same order; of the frees so many percent come 1 to 4 events later
/// than in `trace`. The n-th event comes when it came in `trace`. Which frees are late follows from
/// the seed.
trace::Trace withJitter(const trace::Trace& trace, std::uint64_t percent, std::uint64_t seed);

}  // namespace cistern::programs
