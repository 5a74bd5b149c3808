// Google Benchmark: its start, and its console, which also keeps each case's median.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/harness/command_line.hpp"

namespace cistern::bench {

/// The counter that carries a case's result. Google Benchmark's own "Time" is not used: with
/// several threads some versions divide it by their number and some do not.
inline constexpr const char* kCounter = "ns_per_step";

class MedianReporter final : public benchmark::ConsoleReporter {
 public:
  explicit MedianReporter(std::map<std::string, double>& medians);
  void ReportRuns(const std::vector<Run>& runs) override;

 private:
  void keep(const Run& run);

  std::map<std::string, double>& medians_;
};

/// Starts Google Benchmark: seven repetitions of a tenth of a second, of which the aggregates are
/// reported; `more`; and then the line's arguments, of which the last counts. Returns the program's
/// name and the arguments that it does not know.
std::vector<char*> startGoogleBenchmark(CommandLine& line, const std::vector<std::string>& more);

}  // namespace cistern::bench
