// Runs cases on allocators under Google Benchmark.
#pragma once

#include <vector>

#include "bench/harness/command_line.hpp"
#include "bench/harness/results.hpp"

namespace cistern::bench {

/// Every case on every allocator that `--device` and `--peers` name; case by case, so that what
/// drifts on the machine meets all of them alike. Prints Google Benchmark's console output.
/// Throws InvalidArgument for an argument that nobody knows.
Results runCases(CommandLine& line, const std::vector<Case>& cases);

}  // namespace cistern::bench
