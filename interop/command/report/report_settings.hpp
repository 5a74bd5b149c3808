// The settings of `cistern report`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cistern/options.hpp"
#include "interop/trace/read_limits.hpp"

namespace cistern::command {

enum class ReportFormat : std::uint8_t { kHtml, kJson, kPerfetto, kSpeedscope, kPickle };

/// A moment as the command line names it: by a time, by the program's own name, or by the number of
/// events before it.
struct MomentName {
  std::string said;  ///< as it was written
  std::optional<std::uint64_t> time_us;
  std::optional<std::uint64_t> event;
};

struct ReportSettings {
  std::vector<std::string> files;  ///< one or two paths
  bool compare = false;            ///< two recordings are compared
  std::string output;
  ReportFormat format = ReportFormat::kHtml;
  std::vector<std::string> policies;  ///< other allocators to show, all known
  bool chosen_policies = false;       ///< they were named; else they depend on the recording
  std::vector<MomentName> moments;
  std::optional<std::uint32_t> gpu;
  std::optional<std::uint64_t> capacity;  ///< bytes that the other policies may reserve
  trace::ReadLimits read_limits;
  Options options;  ///< of policy cistern
  std::string command_line;
};

}  // namespace cistern::command
