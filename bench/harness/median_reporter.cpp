#include "bench/harness/median_reporter.hpp"

#include <unistd.h>

namespace cistern::bench {
namespace {

using benchmark::BenchmarkReporter;

bool isShown(const BenchmarkReporter::Run& run) {
  return run.run_type != BenchmarkReporter::Run::RT_Aggregate || run.aggregate_name == "median" ||
         run.aggregate_name == "cv";
}

}  // namespace

MedianReporter::MedianReporter(std::map<std::string, double>& medians)
    : ConsoleReporter(::isatty(STDOUT_FILENO) != 0 ? OO_ColorTabular : OO_Tabular),
      medians_(medians) {}

void MedianReporter::ReportRuns(const std::vector<Run>& runs) {
  std::vector<Run> shown;
  for (const Run& run : runs) {
    keep(run);
    if (isShown(run)) shown.push_back(run);
  }
  ConsoleReporter::ReportRuns(shown);
}

std::vector<char*> startGoogleBenchmark(CommandLine& line, const std::vector<std::string>& more) {
  static std::vector<std::string> arguments{line.program(), "--benchmark_repetitions=7",
                                            "--benchmark_min_time=0.1",
                                            "--benchmark_report_aggregates_only=true"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  arguments.insert(arguments.end(), line.rest().begin(), line.rest().end());
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = int(pointers.size());
  pointers.push_back(nullptr);
  benchmark::Initialize(&count, pointers.data());
  pointers.resize(std::size_t(count));
  return pointers;
}

// A single repetition has no aggregates: it is its own median.
void MedianReporter::keep(const Run& run) {
  const bool aggregate = run.run_type == Run::RT_Aggregate;
  if (aggregate ? run.aggregate_name != "median" : run.repetitions > 1) return;
  const auto counter = run.counters.find(kCounter);
  if (counter == run.counters.end()) return;
  medians_[run.run_name.function_name] = double(counter->second);
}

}  // namespace cistern::bench
