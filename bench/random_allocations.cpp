// RMM's random allocations: mixed sizes up to 4 GiB under a ceiling of 16,000 MiB. See
// docs/benchmarks.md.
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "bench/harness/run.hpp"
#include "bench/workloads/workloads.hpp"

int main(int argc, char** argv) {
  using namespace cistern::bench;
  try {
    CommandLine line(argc, argv);
    const std::vector<Case> cases = randomCases();
    printTable(runCases(line, cases));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
