// Google Benchmark's console, which also keeps each case's median.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

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

}  // namespace cistern::bench
