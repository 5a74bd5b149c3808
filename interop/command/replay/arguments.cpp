#include "interop/command/replay/arguments.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "allocator/base/option_table.hpp"
#include "allocator/device/backends.hpp"
#include "interop/command/console.hpp"
#include "interop/command/did_you_mean.hpp"
#include "interop/command/replay/policy.hpp"

namespace cistern::command {
namespace {

/// None where `text` is empty, as where the option is not given.
std::optional<std::uint64_t> parseSize(std::string_view option, const std::string& text) try {
  if (text.empty()) return std::nullopt;
  if (const std::uint64_t bytes = parseBytes(text); bytes > 0) return bytes;
  throw UsageError(fmt::format("{} {}: must be more than nothing", option, text));
} catch (const InvalidArgument& error) {
  throw UsageError(fmt::format("{}: {}", option, error.what()));
}

std::string requireKnownDevice(const std::string& name) {
  std::vector<std::string_view> known{"auto"};
  for (const Backend* const backend : backends()) known.push_back(backend->name);
  if (std::find(known.begin(), known.end(), name) != known.end()) return name;
  throw UsageError(fmt::format("unknown device '{}': must be auto, {}{}", name, backendNames(),
                               didYouMean(name, known)));
}

/// Each once, in the order given.
std::vector<std::string> policiesFrom(const std::vector<std::string>& names) {
  std::vector<std::string> policies;
  for (const std::string& given : names) {
    const std::string name(policyKind(given).name);
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

/// The environment, then --conf, then the options that are shorthand for a part of it.
Options optionsFrom(const Arguments& a) {
  Options options = Options::fromEnvironment();
  for (std::size_t i = 0; i < a.conf.size(); ++i) {
    try {
      options = Options::parse(a.conf[i], options);
    } catch (const OptionError& error) {
      const std::string which = a.conf.size() > 1 ? fmt::format(" number {}", i + 1) : "";
      throw UsageError(fmt::format("--conf{}, {}", which, error.what()));
    }
  }
  if (!a.page_size.empty()) setPageSize(options, a.page_size);
  if (a.no_recycle) options.recycle = Recycle::kOff;
  return options;
}

std::vector<programs::Recipe> recipesFrom(const std::vector<std::string>& texts) try {
  std::vector<programs::Recipe> recipes;
  for (const std::string& text : texts) {
    const std::vector<programs::Recipe> more = programs::parseRecipes(text);
    recipes.insert(recipes.end(), more.begin(), more.end());
  }
  return recipes;
} catch (const InvalidArgument& error) {
  throw UsageError(fmt::format("--generate: {}", error.what()));
}

/// Any other name is refused, so that no slip of the hand writes a picture over a trace.
std::string requirePicture(const std::string& path) {
  constexpr std::string_view kEnding = ".svg";
  if (path.size() > kEnding.size() && path.ends_with(kEnding)) return path;
  throw UsageError(
      fmt::format("--plot {}: the picture is an SVG, and its name has to end in .svg", path));
}

void requireOneProgram(const ReplaySettings& s) {
  const std::size_t count = s.traces.size() + s.recipes.size();
  if (count == 1) return;
  throw UsageError(
      fmt::format("--plot draws one program, under one policy or several, and {} are given: it "
                  "goes with one trace, or with --generate KIND:SEED",
                  count));
}

}  // namespace

ReplaySettings settingsFrom(const Arguments& a) {
  ReplaySettings s;
  s.traces = a.traces;
  if (std::count(s.traces.begin(), s.traces.end(), "-") > 1) {
    throw UsageError("the standard input (-) can be read only once");
  }
  s.recipes = recipesFrom(a.generate);
  s.read_limits.unpacked_bytes = parseSize("--max-unpacked", a.max_unpacked);
  s.gpu = a.gpu;
  if (s.gpu && s.traces.empty())
    throw UsageError("--gpu chooses a GPU of a PyTorch memory snapshot, and no file is given");
  s.policies = policiesFrom(a.policies);
  s.device = requireKnownDevice(a.device);
  s.capacity = parseSize("--capacity", a.capacity);
  s.fit = a.fit;
  s.gpu_lag_us = a.gpu_lag_us;
  s.rounds = a.repeat;
  s.threads = a.threads;
  s.options = optionsFrom(a);
  s.check = a.check;
  s.format = a.json ? Format::kJson : a.csv ? Format::kCsv : Format::kTable;
  if (!a.plot.empty()) {
    s.plot = requirePicture(a.plot);
    requireOneProgram(s);
  }
  return s;
}

}  // namespace cistern::command
