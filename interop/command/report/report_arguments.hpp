// The arguments of `cistern report` as they were written, and the settings that they mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interop/command/report/report_settings.hpp"

namespace cistern::command {

struct ReportArguments {
  std::vector<std::string> files;
  std::string output;
  std::string format = "html";
  std::vector<std::string> policies;
  std::vector<std::string> moments;
  std::optional<std::uint32_t> gpu;
  std::string capacity;
  std::string max_unpacked;
};

/// The words that --format takes.
std::vector<std::string> reportFormats();

/// Throws UsageError, which names the given value and the allowed ones, or OptionError for the
/// options from the environment.
ReportSettings settingsFrom(const ReportArguments& a);

/// A moment by its time ("12.5s", "300ms"), by a number of events ("4096"), or by the name that the
/// program gave it. Throws UsageError for an empty one.
MomentName parseMoment(const std::string& text);

}  // namespace cistern::command
