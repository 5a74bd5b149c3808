#include "interop/command/report/report_arguments.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocator/base/text.hpp"
#include "interop/command/console.hpp"
#include "interop/command/did_you_mean.hpp"
#include "interop/command/replay/arguments.hpp"
#include "interop/command/replay/policy.hpp"

namespace cistern::command {
namespace {

constexpr double kLongestUs = 9.2e18;
constexpr std::array<std::pair<std::string_view, double>, 6> kTimeUnits = {
    {{"us", 1}, {"µs", 1}, {"ms", 1e3}, {"s", 1e6}, {"min", 6e7}, {"h", 3.6e9}}};
constexpr std::array<std::pair<std::string_view, ReportFormat>, 5> kFormats = {
    {{"html", ReportFormat::kHtml},
     {"json", ReportFormat::kJson},
     {"perfetto", ReportFormat::kPerfetto},
     {"speedscope", ReportFormat::kSpeedscope},
     {"pickle", ReportFormat::kPickle}}};

ReportFormat parseFormat(const std::string& text) {
  for (const auto& [name, format] : kFormats)
    if (text == name) return format;
  const std::vector<std::string> known = reportFormats();
  const std::vector<std::string_view> views(known.begin(), known.end());
  throw UsageError(fmt::format("--format {}: must be one of {}{}", text, fmt::join(known, ", "),
                               didYouMean(text, views)));
}

std::optional<std::uint64_t> parseTime(const std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::optional<double> number = readReal(text.substr(0, digits));
  const std::string_view unit = trimmed(std::string_view(text).substr(digits));
  for (const auto& [name, us] : kTimeUnits) {
    if (unit == name && number && *number * us < kLongestUs)
      return std::uint64_t(std::llround(*number * us));
  }
  return std::nullopt;
}

void requireFiles(const ReportArguments& a) {
  if (a.files.empty()) throw UsageError("report needs a file, or two to compare");
  if (a.files.size() > 2) {
    throw UsageError(
        fmt::format("report takes one file, or two to compare, and {} are given", a.files.size()));
  }
  if (std::count(a.files.begin(), a.files.end(), "-") > 1)
    throw UsageError("the standard input (-) can be read only once");
  if (a.output.empty()) throw UsageError("report needs -o FILE, the file that it writes");
}

void requireOneFile(const ReportSettings& s) {
  const bool compares = s.format == ReportFormat::kHtml || s.format == ReportFormat::kJson;
  if (compares || s.files.size() == 1) return;
  throw UsageError("two files are compared by --format html and json only");
}

std::vector<std::string> policiesFrom(const std::vector<std::string>& names) {
  std::vector<std::string> policies;
  for (const std::string& given : names) {
    const std::string name(policyKind(given).name);
    if (std::find(policies.begin(), policies.end(), name) == policies.end())
      policies.push_back(name);
  }
  return policies;
}

/// A line that makes the report again, for the page.
std::string lineOf(const ReportArguments& a) {
  std::string line = "cistern report";
  for (const std::string& file : a.files) line += ' ' + file;
  line += " -o " + a.output;
  for (const std::string& policy : a.policies) line += " --policy " + policy;
  for (const std::string& moment : a.moments) line += " --at '" + moment + '\'';
  if (a.gpu) line += fmt::format(" --gpu {}", *a.gpu);
  if (!a.capacity.empty()) line += " --capacity " + a.capacity;
  return line;
}

}  // namespace

std::vector<std::string> reportFormats() {
  std::vector<std::string> words;
  for (const auto& [name, format] : kFormats) words.emplace_back(name);
  return words;
}

MomentName parseMoment(const std::string& text) {
  if (trimmed(text).empty())
    throw UsageError("--at needs a time, a name or the number of an event");
  MomentName moment{text, std::nullopt, readCount(text)};
  if (!moment.event) moment.time_us = parseTime(text);
  return moment;
}

ReportSettings settingsFrom(const ReportArguments& a) {
  requireFiles(a);
  ReportSettings s;
  s.files = a.files;
  s.compare = a.files.size() == 2;
  s.output = a.output;
  s.format = parseFormat(a.format);
  requireOneFile(s);
  s.policies = policiesFrom(a.policies);
  s.chosen_policies = !s.policies.empty();
  for (const std::string& moment : a.moments) s.moments.push_back(parseMoment(moment));
  s.gpu = a.gpu;
  s.capacity = parseSize("--capacity", a.capacity);
  s.read_limits.unpacked_bytes = parseSize("--max-unpacked", a.max_unpacked);
  s.options = Options::fromEnvironment();
  s.command_line = lineOf(a);
  return s;
}

}  // namespace cistern::command
