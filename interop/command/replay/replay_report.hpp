// How measurements are printed: as a table for people, or as JSON or CSV for programs. One file
// each. Rows are printed as they come.
#pragma once

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "interop/command/replay/measurement.hpp"
#include "interop/command/replay/replay_settings.hpp"

namespace cistern::command {

class Report {
 public:
  Report() = default;
  virtual ~Report() = default;
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  virtual void begin() {}
  virtual void row(const Measurement& measurement) = 0;
  virtual void end() {}
  /// Whether a row says why it failed; otherwise someone else must.
  virtual bool explainsFailures() const { return false; }
};

/// `device`: in words.
std::unique_ptr<Report> tableReport(std::ostream& out, const ReplaySettings& settings,
                                    std::string device, bool colours);
std::unique_ptr<Report> jsonReport(std::ostream& out, const ReplaySettings& settings);
std::unique_ptr<Report> csvReport(std::ostream& out, const ReplaySettings& settings);

/// The options that the policy was run with, as --conf takes them: those that differ from their
/// defaults. None for a policy that reads no options.
std::optional<std::string> confOf(const ReplaySettings& settings, std::string_view policy);

}  // namespace cistern::command
