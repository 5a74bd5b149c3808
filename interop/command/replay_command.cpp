// The command line of `cistern replay`. Read next: replay/settings.hpp, replay/run_replay.hpp.
#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/command/commands.hpp"
#include "interop/command/replay/policy.hpp"
#include "interop/command/replay/run_replay.hpp"

namespace cistern::command {
namespace {

/// The arguments as they were written.
struct Arguments {
  std::vector<std::string> traces;
  std::vector<std::string> policies;
  std::string device = "auto";
  std::string capacity;
  bool fit = false;
  std::uint64_t gpu_lag_us = 0;
  std::uint64_t repeat = 1;
  std::vector<std::string> conf;
  bool check = false;
  bool json = false;
  bool csv = false;
};

constexpr std::uint64_t kMostLagUs = 3'600'000'000;  // an hour
constexpr std::uint64_t kMostRounds = 1'000'000;

std::string policyHelp() {
  std::string text = "How requests are served; may be given several times, or a,b,c:";
  for (const PolicyKind& kind : policyKinds())
    text += fmt::format("\n{}: {}", kind.name, kind.text);
  return text;
}

void addMeasuring(CLI::App& parser, Arguments& a) {
  parser.add_option("trace", a.traces, "Recorded traces, gzip or plain")
      ->required()
      ->type_name("TRACE");
  parser.add_option("--policy", a.policies, policyHelp())
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("NAME");
  parser.add_option("--conf", a.conf, "Options of policy cistern: see `cistern options`")
      ->delimiter('\n')
      ->allow_extra_args(false)
      ->type_name("K:V,...");
  parser.add_option("--repeat", a.repeat, "Replay each trace so often with one allocator")
      ->check(CLI::Range(std::uint64_t(1), kMostRounds))
      ->type_name("N");
}

void addDevice(CLI::App& parser, Arguments& a) {
  parser
      .add_option("--device", a.device, "auto, sim, cuda or hip; auto is the first GPU, else sim")
      ->type_name("NAME");
  auto* capacity = parser.add_option("--capacity", a.capacity, "What may be reserved, as 80GiB")
                       ->type_name("SIZE");
  parser.add_flag("--fit", a.fit, "Search for the smallest capacity that serves the trace")
      ->excludes(capacity);
  parser.add_option("--gpu-lag-us", a.gpu_lag_us, "How far the simulated GPU is behind the host")
      ->check(CLI::Range(std::uint64_t(0), kMostLagUs))
      ->type_name("N");
  parser.add_flag("--check", a.check, "Look for races, on the simulated device (slow)");
}

void addOutput(CLI::App& parser, Arguments& a) {
  auto* json = parser.add_flag("--json", a.json, "One JSON object a line");
  parser.add_flag("--csv", a.csv, "Comma-separated values")->excludes(json);
}

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

ReplaySettings settingsFrom(const Arguments& a) {
  ReplaySettings s;
  s.traces = a.traces;
  s.policies = policiesFrom(a.policies);
  s.device = requireKnownDevice(a.device);
  s.capacity = parseCapacity(a.capacity);
  s.fit = a.fit;
  s.gpu_lag_us = a.gpu_lag_us;
  s.rounds = a.repeat;
  s.options = Options::parse(fmt::format("{}", fmt::join(a.conf, ",")), Options::fromEnvironment());
  s.check = a.check;
  s.format = a.json ? Format::kJson : a.csv ? Format::kCsv : Format::kTable;
  return s;
}

}  // namespace

Command addReplay(CLI::App& program) {
  CLI::App* parser =
      program.add_subcommand("replay", "Replay recorded traces, and say what they take");
  const auto arguments = std::make_shared<Arguments>();
  addMeasuring(*parser, *arguments);
  addDevice(*parser, *arguments);
  addOutput(*parser, *arguments);
  parser->footer(
      "Exit status: 0 when every trace was served, 1 when one was not, 2 for bad usage or a "
      "bad file.");
  return {parser,
          [arguments](Console& console) { return runReplay(settingsFrom(*arguments), console); }};
}

}  // namespace cistern::command
