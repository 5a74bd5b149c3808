// The command line of `cistern replay`. Read next: replay/arguments.hpp, replay/run_replay.hpp.
#include <array>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "allocator/device/backends.hpp"
#include "interop/command/commands.hpp"
#include "interop/command/environment.hpp"
#include "interop/command/replay/arguments.hpp"
#include "interop/command/replay/policy.hpp"
#include "interop/command/replay/run_replay.hpp"
#include "interop/command/writable.hpp"
#include "interop/programs/generate.hpp"

namespace cistern::command {
namespace {

constexpr std::uint32_t kMostGpu = 65'535;
constexpr std::size_t kMostThreads = 1024;
constexpr std::uint64_t kMostRounds = 1'000'000;

std::string generateHelp() {
  std::string text =
      "Programs that are made up: KIND:SEED or KIND:FROM-TO, with :jitter=PERCENT for frees that "
      "come late. KIND is all, or";
  for (const programs::Kind& kind : programs::kinds())
    text += fmt::format("\n{}: {}", kind.name, kind.text);
  return text;
}

void addMeasuring(CLI::App& parser, Arguments& a) {
  parser.add_option("trace", a.traces, "Recorded traces, gzip or plain; - is the standard input")
      ->check(kNotEmpty)
      ->type_name("TRACE");
  parser.add_option("--generate", a.generate, generateHelp())
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(kNotEmpty)
      ->type_name("KIND:SEEDS");
  parser
      .add_option("--max-unpacked", a.max_unpacked,
                  "The most that a gzip may unpack to (8 MiB, or 100 times its size)")
      ->check(kNotEmpty)
      ->type_name("SIZE");
  parser.add_option("--gpu", a.gpu, "The one GPU of a PyTorch memory snapshot; else all")
      ->check(CLI::Range(0u, kMostGpu))
      ->type_name("N");
  parser.add_option("--repeat", a.repeat, "Replay each trace so often with one allocator")
      ->check(CLI::Range(std::uint64_t(1), kMostRounds))
      ->type_name("N");
  parser.add_option("--threads", a.threads, "Deal the events over N threads, one after the other")
      ->check(CLI::Range(std::size_t(1), kMostThreads))
      ->type_name("N");
}

void addPolicies(CLI::App& parser, Arguments& a) {
  parser
      .add_option("--policy", a.policies,
                  policyHelp("How requests are served; may be given several times, or a,b,c:"))
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(kNotEmpty)
      ->type_name("NAME");
  parser.add_option("--conf", a.conf, "Options of policy cistern: see `cistern options`")
      ->delimiter('\n')
      ->allow_extra_args(false)
      ->type_name("K:V,...");
  parser.add_option("--page-size", a.page_size, "The same as page_size:SIZE at the end of --conf")
      ->check(kNotEmpty)
      ->type_name("SIZE");
  parser.add_flag("--no-recycle", a.no_recycle, "The same as recycle:off at the end of --conf");
}

void addDevice(CLI::App& parser, Arguments& a) {
  parser
      .add_option("--device", a.device,
                  fmt::format("auto, {}; auto is what CISTERN_BACKEND names, else sim with "
                              "--gpu-lag-us or --check, else the first GPU, else sim",
                              backendNames()))
      ->check(kNotEmpty)
      ->type_name("NAME");
  auto* capacity =
      parser.add_option("--capacity", a.capacity, "The most that may be reserved, as 80GiB")
          ->check(kNotEmpty)
          ->type_name("SIZE");
  parser.add_flag("--fit", a.fit, "Search for the smallest capacity that serves the trace")
      ->excludes(capacity);
  parser
      .add_option("--gpu-lag-us", a.gpu_lag,
                  "How far the simulated GPU is behind the host, in µs or as 10ms")
      ->check(kNotEmpty)
      ->type_name("TIME");
  parser.add_flag("--check", a.check, "Look for races, on the simulated device (slow)");
}

void addOutput(CLI::App& parser, Arguments& a) {
  auto* json = parser.add_flag("--json", a.json, "One JSON object a line");
  parser.add_flag("--csv", a.csv, "Comma-separated values")->excludes(json);
  parser
      .add_option("--progress", a.progress,
                  "The terminal that shows how far it is; else stderr, if it is one")
      ->check(kNotEmpty)
      ->type_name("FILE");
  parser.add_option("--plot", a.plot, "Draw the memory of one program over time, as an SVG")
      ->check(kNotEmpty)
      ->type_name("FILE");
}

ExitStatus replayWhatIsGiven(const Arguments& a, Console& console) {
  if (a.traces.empty() && a.generate.empty())
    throw UsageError("replay needs a trace, or --generate and a kind of program");
  requireKnownBackend();
  const ReplaySettings settings = settingsFrom(a);
  std::vector<NamedFile> traces;
  for (const std::string& trace : a.traces)
    traces.push_back({"the trace", trace == "-" ? "/dev/stdin" : trace});
  requireApart(std::array{NamedFile{"--plot", a.plot}}, traces);
  return runReplay(settings, console);
}

}  // namespace

Command addReplay(CLI::App& program) {
  CLI::App* parser =
      program.add_subcommand("replay", "Replay recorded traces, and say what they take");
  const auto arguments = std::make_shared<Arguments>();
  addMeasuring(*parser, *arguments);
  addPolicies(*parser, *arguments);
  addDevice(*parser, *arguments);
  addOutput(*parser, *arguments);
  parser->footer(
      "Exit status: 0 when every trace was served, 1 when one was not or the output\n"
      "cannot be written, 2 for bad usage or a bad file.");
  return {parser, [arguments](Console& console) { return replayWhatIsGiven(*arguments, console); }};
}

}  // namespace cistern::command
