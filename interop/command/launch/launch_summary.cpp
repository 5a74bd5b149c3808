#include "interop/command/launch/launch_summary.hpp"

#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "allocator/base/bytes.hpp"
#include "allocator/base/printable.hpp"
#include "interop/command/report/run_report.hpp"
#include "interop/recording/read_recording.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::command {
namespace {

using preload::Served;

std::string row(std::string_view what, const std::string& text) {
  return fmt::format("  {:<12}{}\n", what, text);
}

std::string timeText(double nanoseconds) {
  if (nanoseconds < 1e3) return fmt::format("{:.0f} ns", nanoseconds);
  if (nanoseconds < 1e6) return fmt::format("{:.2f} us", nanoseconds / 1e3);
  if (nanoseconds < 1e9) return fmt::format("{:.2f} ms", nanoseconds / 1e6);
  return fmt::format("{:.2f} s", nanoseconds / 1e9);
}

std::string servedText(const Account& a) {
  std::string text;
  for (std::size_t i = 0; i < preload::kServedCount; ++i) {
    const Account::Calls& calls = a.served[i];
    if (calls.count == 0) continue;
    text += fmt::format("{}{} {} ({} each)", text.empty() ? "" : ", ", calls.count,
                        a.named(preload::kServedNames[i]),
                        timeText(double(calls.nanoseconds) / double(calls.count)));
  }
  return text.empty() ? "nothing" : text;
}

std::string memoryText(const Account& a) {
  std::string text = fmt::format("{} asked for at the peak, {} reserved",
                                 formatBytes(a.requested_peak), formatBytes(a.reserved_peak));
  if (a.reserved_peak != 0)
    text += fmt::format(" ({:.1f} %)", 100.0 * double(a.requested_peak) / double(a.reserved_peak));
  return text;
}

// The driver's price is that of a cudaMalloc with its cudaFree, on a device with nothing to do.
std::string savedText(const Account& a) {
  const std::uint64_t ours = a.of(Served::kMalloc).nanoseconds + a.of(Served::kFree).nanoseconds;
  return fmt::format(
      "{} in {}; the driver would have taken {} on an idle device{}", timeText(double(ours)),
      a.named("{api}Malloc and {api}Free"), timeText(double(a.driver_nanoseconds)),
      ours != 0 && a.driver_nanoseconds > ours
          ? fmt::format(", {:.0f} times that", double(a.driver_nanoseconds) / double(ours))
          : "");
}

std::string passedText(const Account& a) {
  std::string text;
  for (std::size_t i = 0; i < preload::kPassedCount; ++i) {
    if (a.passed[i] == 0) continue;
    text += row(text.empty() ? "not served" : "",
                fmt::format("{}: {}", a.passed[i], a.named(preload::kPassedNames[i])));
  }
  return text;
}

std::string textOf(const Account& a, bool all) {
  std::string text = fmt::format("cistern: process {}: {}\n", a.number(), printable(a.program));
  if (a.contexts == 0) {
    text += row("served",
                "nothing: it asked for no memory that Cistern serves, or found no GPU (see "
                "`cistern doctor`)");
  } else {
    text += row("device", printable(a.device));
    text += row("served", servedText(a));
    text += row("memory", memoryText(a));
    if (a.host_reserved_peak != 0) {
      text +=
          row("overflow", fmt::format("{} of that in the host's memory at the peak, for want of "
                                      "room on the device",
                                      formatBytes(a.host_reserved_peak)));
    }
    if (a.driver_nanoseconds != 0) text += row("time", savedText(a));
  }
  if (a.handles_given + a.handles_opened != 0) {
    text += row("shared", fmt::format("{} handles given to other processes, {} of theirs opened",
                                      a.handles_given, a.handles_opened));
  }
  text += passedText(a);
  if (a.out_of_memory != 0)
    text += row("refused", fmt::format("{}: out of memory", a.out_of_memory));
  if (!all) return text;
  text += row("left", fmt::format("{} not freed at the end", formatBytes(a.requested)));
  text += row("work",
              fmt::format("submissions: {}; calls that may be some: {}", a.work, a.unknown_work));
  if (!a.unknown_names.empty()) text += row("", printable(a.unknown_names));
  text += row("reuse", fmt::format("barriers: {}, fences: {}, between frees and what came after",
                                   a.barriers, a.fences));
  text += row("contexts", fmt::format("{}", a.contexts));
  return text;
}

std::string endingText(const Ending& ending) {
  if (ending.signal == 0) return "";
  return fmt::format(
      "cistern: process {} was ended by signal {} ({}); what it had counted by then:\n", ending.pid,
      ending.signal, strsignal(ending.signal));
}

}  // namespace

std::string summaryText(const std::vector<Account>& accounts, const Ending& ending, bool all) {
  std::string text = endingText(ending);
  bool any = false;
  for (const Account& account : accounts) {
    const bool shown = account.anything() || account.first;
    if (shown) text += textOf(account, all);
    any |= shown;
  }
  if (!any && ending.status != 127) {
    text += fmt::format(
        "cistern: there is no summary of process {}. Either it has not loaded the library, because "
        "it is linked statically or has rights that LD_PRELOAD does not pass. Or it could write no "
        "record, and has said why. Or the run's folder was removed\n",
        ending.pid);
  }
  return text;
}

// The summary as JSON. See launch_summary.hpp.

namespace {

using Json = nlohmann::ordered_json;

Json jsonOf(const Account& a) {
  Json served = Json::object();
  for (std::size_t i = 0; i < preload::kServedCount; ++i) {
    served[a.named(preload::kServedNames[i])] = {{"calls", a.served[i].count},
                                                 {"nanoseconds", a.served[i].nanoseconds}};
  }
  Json passed = Json::object();
  for (std::size_t i = 0; i < preload::kPassedCount; ++i) {
    if (a.passed[i] != 0) passed[a.named(preload::kPassedNames[i])] = a.passed[i];
  }
  return {{"pid", a.pid},
          {"number", a.number()},
          {"program", a.program},
          {"device", a.device},
          {"vendor", a.vendor},
          {"exited", a.exited},
          {"served", served},
          {"passed", passed},
          {"driver_nanoseconds", a.driver_nanoseconds},
          {"requested_bytes", a.requested},
          {"requested_peak_bytes", a.requested_peak},
          {"reserved_bytes", a.reserved},
          {"reserved_peak_bytes", a.reserved_peak},
          {"host_reserved_bytes", a.host_reserved},
          {"host_reserved_peak_bytes", a.host_reserved_peak},
          {"work", a.work},
          {"unknown_work", a.unknown_work},
          {"unknown_functions", a.unknown_names},
          {"barriers", a.barriers},
          {"fences", a.fences},
          {"out_of_memory", a.out_of_memory},
          {"contexts", a.contexts},
          {"handles_given", a.handles_given},
          {"handles_opened", a.handles_opened},
          {"trace_events", a.trace_events}};
}

}  // namespace

std::string summaryJson(const std::vector<Account>& accounts, const Ending& ending) {
  Json processes = Json::array();
  for (const Account& account : accounts) processes.push_back(jsonOf(account));
  const Json all = {{"pid", ending.pid},
                    {"status", ending.status},
                    {"signal", ending.signal},
                    {"processes", processes}};
  // Bytes of a command line that are not UTF-8 become a replacement character.
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

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
