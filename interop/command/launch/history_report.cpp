#include "interop/command/launch/history_report.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "allocator/base/printable.hpp"
#include "interop/command/launch/records.hpp"
#include "interop/command/report/run_report.hpp"
#include "interop/recording/read_recording.hpp"

namespace cistern::command {
namespace {

ReportSettings reportSettings(const LaunchSettings& settings) {
  ReportSettings report;
  report.output = settings.report;
  report.options = Options::fromEnvironment();
  report.command_line = "cistern run --report " + settings.report + " --";
  for (const std::string& word : settings.command) report.command_line += ' ' + word;
  if (!settings.show_arguments) {
    report.command_line =
        fmt::format("cistern run --report {} -- {}", settings.report, settings.command.front());
  }
  return report;
}

/// Without the histories of allocators that served nothing, and those that end in the middle of
/// their first lines.
std::vector<recording::Recording> recordingsIn(const std::filesystem::path& folder) {
  std::vector<recording::Recording> all;
  for (const std::filesystem::path& path : historiesIn(folder)) {
    try {
      for (recording::Recording& recording : recording::readRecordings(path)) {
        recording.file = recording.name;  // its own is gone when the run is over
        all.push_back(std::move(recording));
      }
    } catch (const trace::TraceError&) {
    }
  }
  return all;
}

}  // namespace

void requireHistoryReport(const LaunchSettings& settings) {
  requireReportable(reportSettings(settings));
}

void writeHistoryReport(const LaunchSettings& settings, const std::filesystem::path& folder,
                        Console& console) {
  std::vector<recording::Recording> recordings = recordingsIn(folder);
  if (recordings.empty()) {
    throw Error(fmt::format(
        "--report {}: nothing was recorded, and this file is not written: the program allocated no "
        "device memory through Cistern",
        settings.report));
  }
  writeReport(std::move(recordings), reportSettings(settings), console);
  console.err << "cistern: the report is in " << printable(settings.report) << '\n';
}

}  // namespace cistern::command
