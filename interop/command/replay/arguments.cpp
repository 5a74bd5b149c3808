#include "interop/command/replay/arguments.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocator/base/option_table.hpp"
#include "interop/command/console.hpp"
#include "interop/command/replay/policy.hpp"

namespace cistern::command {
namespace {

std::optional<std::uint64_t> parseCapacity(const std::string& text) try {
  if (text.empty()) return std::nullopt;
  if (const std::uint64_t bytes = parseBytes(text); bytes > 0) return bytes;
  throw UsageError("--capacity 0: must be more than nothing");
} catch (const InvalidArgument& error) {
  throw UsageError(fmt::format("--capacity: {}", error.what()));
}

std::string requireKnownDevice(const std::string& name) {
  for (const char* known : {"auto", "sim", "cuda", "hip"}) {
    if (name == known) return name;
  }
  throw UsageError(fmt::format("unknown device '{}': must be auto, sim, cuda or hip", name));
}

/// Each once, in the order given.
std::vector<std::string> policiesFrom(const std::vector<std::string>& names) {
  std::vector<std::string> policies;
  for (const std::string& name : names) {
    (void)policyKind(name);
    if (std::find(policies.begin(), policies.end(), name) == policies.end()) {
      policies.push_back(name);
    }
  }
  if (policies.empty()) policies.emplace_back("cistern");
  return policies;
}

// The option's own row judges the size: a conf made of it would take "4MiB,limit:1GiB" for two.
void setPageSize(Options& options, const std::string& text) {
  for (const OptionRow& row : optionTable()) {
    if (row.name != "page_size" || row.set(options, row.name, text)) continue;
    throw UsageError(fmt::format("--page-size cannot be '{}'; allowed: {}", text, row.allowed()));
  }
}

/// The environment, then --conf, then what is shorthand for a part of it.
Options optionsFrom(const Arguments& a) {
  Options options =
      Options::parse(fmt::format("{}", fmt::join(a.conf, ",")), Options::fromEnvironment());
  if (!a.page_size.empty()) setPageSize(options, a.page_size);
  if (a.no_recycle) options.recycle = Recycle::kOff;
  return options;
}

}  // namespace

ReplaySettings settingsFrom(const Arguments& a) {
  ReplaySettings s;
  s.traces = a.traces;
  s.policies = policiesFrom(a.policies);
  s.device = requireKnownDevice(a.device);
  s.capacity = parseCapacity(a.capacity);
  s.fit = a.fit;
  s.gpu_lag_us = a.gpu_lag_us;
  s.rounds = a.repeat;
  s.threads = a.threads;
  s.options = optionsFrom(a);
  s.check = a.check;
  s.format = a.json ? Format::kJson : a.csv ? Format::kCsv : Format::kTable;
  return s;
}

}  // namespace cistern::command
