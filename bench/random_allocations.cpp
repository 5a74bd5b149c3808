// RMM's random allocations: mixed sizes up to 4 GiB under a ceiling of 16,000 MiB. See
// docs/benchmarks.md.
#include "bench/harness/run.hpp"
#include "bench/workloads/workloads.hpp"

int main(int argc, char** argv) {
  using namespace cistern::bench;
  return runProgram(argc, argv, [](CommandLine& line) {
    const std::vector<Case> cases = randomCases();
    printTable(runCases(line, cases));
  });
}
