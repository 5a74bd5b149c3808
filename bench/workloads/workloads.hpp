// The cases of the benchmarks. Sizes and random sequences are drawn once, when a case is made, and
// are the same for every allocator. docs/benchmarks.md says what each case stands for.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/harness/case.hpp"

namespace cistern::bench {

/// Allocate one size and free it. 512 B, 64 KiB, 1 MiB, 24 MiB. A step is a pair.
std::vector<Case> pairCases();

/// 10 to 1,000,000 live blocks of log-uniform size from 512 B to 1 MiB. A step frees a random one
/// and allocates another.
std::vector<Case> churnCases();

/// 1, 4 and 16 threads, each with a ring of 16 live blocks of 512 B x 2^(i mod 9): once with a
/// stream for each thread, once with one stream for all of them. A step is a pair.
std::vector<Case> threadCases();

/// RMM's random allocations: 2 n steps of which 73% allocate a uniform size of up to `most`, while
/// fewer than n blocks and 16,000 MiB are live; all others free a random block. What is left is
/// freed at the end. A step is one call.
std::vector<Case> randomCases();

}  // namespace cistern::bench
