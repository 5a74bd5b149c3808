// The pair without Google Benchmark and without the peers' interface around it, for tools that
// count instructions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cistern::bench {

/// Allocates and frees `bytes` on a simulated device `pairs` times, in the function plainPairs, and
/// prints what a pair took. Tell valgrind to collect in that function only.
void runPlainPairs(std::uint64_t pairs, std::size_t bytes);

}  // namespace cistern::bench
