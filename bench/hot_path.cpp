// What one allocate and one free cost when nothing stands in the way: pairs, churn at up to a
// million live blocks, and threads. See docs/benchmarks.md.
#include "allocator/base/bytes.hpp"
#include "bench/harness/plain_pairs.hpp"
#include "bench/harness/run.hpp"
#include "bench/workloads/workloads.hpp"

namespace cistern::bench {
namespace {

void append(std::vector<Case>& cases, const std::vector<Case>& more) {
  cases.insert(cases.end(), more.begin(), more.end());
}

std::vector<Case> hotPathCases() {
  std::vector<Case> cases = pairCases();
  append(cases, churnCases());
  append(cases, threadCases());
  return cases;
}

/// --pairs N [--size S]: the plain loop. False when it was not asked for.
bool plainLoopAsked(CommandLine& line) {
  const auto pairs = line.takeCount("pairs");
  if (!pairs) return false;
  const std::size_t size = parseBytes(line.takeOr("size", "512"));
  line.requireAllTaken("--pairs=N, --size=SIZE");
  runPlainPairs(*pairs, size);
  return true;
}

void run(CommandLine& line) {
  if (plainLoopAsked(line)) return;
  const std::vector<Case> cases = hotPathCases();
  const Results results = runCases(line, cases);
  printTable(results);
  printScaling(results, "churn/", "churn/1000");
}

}  // namespace
}  // namespace cistern::bench

int main(int argc, char** argv) {
  return cistern::bench::runProgram(argc, argv, cistern::bench::run);
}
