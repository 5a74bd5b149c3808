#include "interop/command/replay/arguments.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/option_table.hpp"
#include "allocator/base/text.hpp"
#include "allocator/device/backends.hpp"
#include "interop/command/console.hpp"
#include "interop/command/did_you_mean.hpp"
#include "interop/command/replay/grouped.hpp"
#include "interop/command/replay/policy.hpp"

namespace cistern::command {
namespace {

constexpr std::uint64_t kFewBytes = 2 * kMiB;  // less than a page
constexpr double kMostLagUs = 3.6e9;           // an hour
constexpr std::pair<std::string_view, double> kLagUnits[] = {
    {"", 1}, {"us", 1}, {"µs", 1}, {"ms", 1e3}, {"s", 1e6}};

/// "10000", "10000us", "10ms" or "0.01s", in µs; 0 where it is not given.
std::uint64_t parseLag(const std::string& text) {
  if (text.empty()) return 0;
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::optional<double> number = readReal(text.substr(0, digits));
  const std::string_view unit = trimmed(std::string_view(text).substr(digits));
  for (const auto& [name, us] : kLagUnits) {
    if (unit == name && number && *number * us <= kMostLagUs)
      return std::uint64_t(std::llround(*number * us));
  }
  throw UsageError(fmt::format(
      "--gpu-lag-us cannot be '{}'; allowed: 0 to an hour, in µs or as 10ms or 1s", text));
}

std::string requireKnownDevice(const std::string& name) {
  std::vector<std::string_view> known{"auto"};
  for (const Backend* const backend : backends()) known.push_back(backend->name);
  if (std::find(known.begin(), known.end(), name) != known.end()) return name;
  throw UsageError(fmt::format("unknown device '{}': must be auto, {}{}", name, backendNames(),
                               didYouMean(name, known)));
}

/// Each once, in the order given.
void setPolicies(ReplaySettings& s, const std::vector<std::string>& names) {
  for (const std::string& given : names) {
    const std::string name(policyKind(given).name);
    if (std::find(s.policies.begin(), s.policies.end(), name) == s.policies.end()) {
      s.policies.push_back(name);
    } else {
      s.notes.push_back(fmt::format("--policy names {} more than once: it has one row", name));
    }
  }
  if (s.policies.empty()) s.policies.emplace_back("cistern");
}

/// The options are given for nothing where no policy reads them.
void noteUnread(ReplaySettings& s, const Arguments& a) {
  const auto reads = [](const std::string& policy) { return policyKind(policy).reads_options; };
  if (std::any_of(s.policies.begin(), s.policies.end(), reads)) return;
  for (const auto& [given, option] :
       {std::pair{!a.conf.empty(), "--conf"}, std::pair{!a.page_size.empty(), "--page-size"},
        std::pair{a.no_recycle, "--no-recycle"}}) {
    if (!given) continue;
    s.notes.push_back(
        fmt::format("{} has no effect: policy cistern reads it, and {} not", option,
                    s.policies.size() == 1 ? s.policies[0] + " does" : "the policies here do"));
  }
}

// The option's own row judges the size: a conf made of it would take "4MiB,limit:1GiB" for two.
void setPageSize(Options& options, const std::string& text) {
  for (const OptionRow& row : optionTable()) {
    if (row.name != "page_size" || row.set(options, row.name, text)) continue;
    throw UsageError(fmt::format("--page-size cannot be '{}'; allowed: {}{}", text, row.allowed(),
                                 row.readAs(row.name, text)));
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

std::optional<std::uint64_t> parseSize(std::string_view option, const std::string& text) try {
  if (text.empty()) return std::nullopt;
  const std::uint64_t bytes = parseBytes(text);
  if (bytes == 0) throw UsageError(fmt::format("{} {}: must be more than nothing", option, text));
  if (bytes < kFewBytes && readCount(text)) {
    throw UsageError(fmt::format("{}: {} is {}; write {}GiB or {}MiB, or {}B if bytes are meant",
                                 option, text, counted(bytes, "byte"), text, text, text));
  }
  return bytes;
} catch (const InvalidArgument& error) {
  throw UsageError(fmt::format("{}: {}", option, error.what()));
}

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
  setPolicies(s, a.policies);
  s.device = requireKnownDevice(a.device);
  s.capacity = parseSize("--capacity", a.capacity);
  s.fit = a.fit;
  s.gpu_lag_us = parseLag(a.gpu_lag);
  s.rounds = a.repeat;
  s.threads = a.threads;
  s.options = optionsFrom(a);
  noteUnread(s, a);
  s.check = a.check;
  s.format = a.json ? Format::kJson : a.csv ? Format::kCsv : Format::kTable;
  s.progress = a.progress;
  if (!a.plot.empty()) {
    s.plot = requirePicture(a.plot);
    requireOneProgram(s);
  }
  return s;
}

}  // namespace cistern::command
