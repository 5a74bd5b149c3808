#include "interop/command/environment.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "allocator/device/open.hpp"
#include "cistern/options.hpp"
#include "interop/command/console.hpp"
#include "interop/command/did_you_mean.hpp"
#include "interop/command/launch/child.hpp"

namespace cistern::command {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOurs = "CISTERN_";

/// The text of the error that a function throws; empty if it throws none.
template <class Function>
std::string errorOf(Function function) try {
  (void)function();
  return {};
} catch (const Error& error) {
  return error.what();
}

std::string confProblem(const std::string&) { return errorOf(Options::fromEnvironment); }
std::string backendProblem(const std::string&) { return errorOf(backendOfEnvironment); }
std::string preloadProblem(const std::string&) { return errorOf(preloadLibrary); }

std::string torchProblem(const std::string& value) {
  constexpr std::array<std::string_view, 3> kModes = {"auto", "native", "plugin"};
  if (value.empty() || std::find(kModes.begin(), kModes.end(), value) != kModes.end()) return {};
  return fmt::format("CISTERN_TORCH is '{}': must be auto, native or plugin{}", value,
                     didYouMean(value, kModes));
}

std::string rootProblem(const std::string& value) {
  constexpr std::string_view kLibrary = "build/release/libcistern.so.0";
  std::error_code none;
  if (value.empty() || fs::exists(fs::path(value) / kLibrary, none)) return {};
  return fmt::format("CISTERN_ROOT is '{}', which has no {}: must be a checkout with a build",
                     value, kLibrary);
}

std::string cacheProblem(const std::string& value) {
  std::error_code none;
  if (value.empty() || !fs::exists(value, none) || fs::is_directory(value, none)) return {};
  return fmt::format("CISTERN_CACHE is '{}', which is no folder", value);
}

// A name without a slash is looked for by the loader.
std::string libraryProblem(std::string_view variable, const std::string& value) {
  std::error_code none;
  if (value.find('/') == value.npos || fs::exists(value, none)) return {};
  return fmt::format("{} is '{}', which is not there", variable, value);
}

std::string cudaProblem(const std::string& value) {
  return libraryProblem("CISTERN_CUDA_LIBRARY", value);
}
std::string hipProblem(const std::string& value) {
  return libraryProblem("CISTERN_HIP_LIBRARY", value);
}

constexpr std::array<Variable, 18> kVariables = {{
    {"CISTERN_CONF", "Options of the allocator: NAME:VALUE,...; see `cistern options`",
     confProblem},
    {"CISTERN_BACKEND", "The devices that auto opens: cuda, hip, sim or auto", backendProblem},
    {"CISTERN_PRELOAD", "The library that `cistern run` puts before a program", preloadProblem},
    {"CISTERN_CUDA_LIBRARY", "The file of CUDA's runtime, where the build loads one", cudaProblem},
    {"CISTERN_HIP_LIBRARY", "The file of HIP's runtime", hipProblem},
    {"CISTERN_TORCH", "The way under PyTorch: auto, native or plugin", torchProblem},
    {"CISTERN_CACHE", "The folder for what cistern.torch compiles", cacheProblem},
    {"CISTERN_ROOT", "The checkout whose build the Python package uses", rootProblem},
    {"CISTERN_STATS", "1: statistics and leaks are printed at the end of a program", nullptr},
    {"CISTERN_SLEEPABLE", "1: `cistern sleep` can empty the caches, over a unix socket", nullptr},
    {"CISTERN_RUN_FOLDER", "Set by `cistern run`: the folder for records", nullptr},
    {"CISTERN_RUN_PROCESS", "Set by `cistern run`: the process to serve", nullptr},
    {"CISTERN_RUN_NAMESPACE", "Set by `cistern run`: the PID namespace of that process", nullptr},
    {"CISTERN_RUN_TRACE", "Set by `cistern run --trace`", nullptr},
    {"CISTERN_RUN_ARGUMENTS", "Set by `cistern run --show-arguments`", nullptr},
    {"CISTERN_RUN_IPC", "Set by `cistern run --ipc`", nullptr},
    {"CISTERN_RUN_STRICT", "Set by `cistern run --strict`", nullptr},
    {"CISTERN_RUN_HISTORY", "Set by `cistern run --report`", nullptr},
}};

// Without the part that all have, which would make any two of them alike.
std::string strangerWarning(std::string_view name) {
  std::vector<std::string_view> ends;
  for (const Variable& variable : kVariables) ends.push_back(variable.name.substr(kOurs.size()));
  const std::string near(nearestOf(name.substr(kOurs.size()), ends));
  return fmt::format("nothing reads a variable named {}{}", name,
                     near.empty() ? "" : fmt::format("; did you mean {}{}?", kOurs, near));
}

Setting settingOf(std::string_view name, std::string value) {
  Setting setting{std::string(name), std::move(value), {}, {}};
  const auto* const known =
      std::find_if(kVariables.begin(), kVariables.end(),
                   [name](const Variable& variable) { return variable.name == name; });
  if (known == kVariables.end()) {
    setting.warning = strangerWarning(name);
  } else if (known->problem != nullptr) {
    setting.problem = known->problem(setting.value);
  }
  return setting;
}

}  // namespace

std::span<const Variable> variables() { return kVariables; }

std::vector<Setting> environmentSettings() {
  std::vector<Setting> settings;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    std::string_view value(*entry);
    bool found = false;
    const std::string_view name = cutAt(value, '=', found);
    if (found && name.starts_with(kOurs)) settings.push_back(settingOf(name, std::string(value)));
  }
  std::sort(settings.begin(), settings.end(),
            [](const Setting& a, const Setting& b) { return a.name < b.name; });
  return settings;
}

void requireKnownBackend() try {
  (void)backendOfEnvironment();
} catch (const InvalidArgument& error) {
  throw UsageError(error.what());
}

}  // namespace cistern::command
