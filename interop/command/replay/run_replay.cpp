#include "interop/command/replay/run_replay.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "allocator/base/printable.hpp"
#include "allocator/device/backends.hpp"
#include "allocator/device/open.hpp"
#include "interop/command/replay/grouped.hpp"
#include "interop/command/replay/measure.hpp"
#include "interop/command/replay/plot.hpp"
#include "interop/command/replay/policy.hpp"
#include "interop/command/replay/progress_bar.hpp"
#include "interop/command/replay/progress_terminal.hpp"
#include "interop/command/replay/read_scripts.hpp"
#include "interop/command/replay/replay_report.hpp"
#include "interop/command/replay/stage.hpp"
#include "interop/command/wrap.hpp"

namespace cistern::command {
namespace {

/// Whether the settings leave the device open, and have what only the simulated one can do.
bool asksForSim(const ReplaySettings& s) {
  return s.device == "auto" && backendOfEnvironment() == "auto" && (s.check || s.gpu_lag_us != 0);
}

/// Checks the settings that depend on the device. Pre: s.device is resolved.
void requireSense(const ReplaySettings& s) {
  for (const auto& [given, option] :
       {std::pair{s.check, "--check"}, std::pair{s.gpu_lag_us != 0, "--gpu-lag-us"}}) {
    if (isSimulated(s.device) || !given) continue;
    throw UsageError(fmt::format("{} needs --device sim; the device is {}", option, s.device));
  }
  if (!s.capacity) return;
  const auto held = [](const std::string& name) { return policyKind(name).takes_capacity; };
  if (std::any_of(s.policies.begin(), s.policies.end(), held)) return;
  throw UsageError(cannotBeHeld(s.policies.front()));
}

std::string inWords(Stage& stage, const ReplaySettings& s) {
  Device& device = stage.device();
  if (stage.sim() == nullptr) return fmt::format("{} ({})", device.name(), device.backend());
  const std::string size = formatBytes(std::max(kDefaultSimCapacity, s.capacity.value_or(0)));
  const std::string lag =
      s.gpu_lag_us == 0 ? "keeps up with" : fmt::format("is {} µs behind", grouped(s.gpu_lag_us));
  return fmt::format("the {} of {}, whose GPU {} the host", device.name(), size, lag);
}

/// The device in words, after making sure that every policy can run on it.
std::string requireDevice(const ReplaySettings& s) {
  Stage stage(s, 0);
  for (const std::string& name : s.policies) {
    const std::string why = policyKind(name).lacks(stage.device());
    if (!why.empty()) throw Error(why);
  }
  return inWords(stage, s);
}

std::unique_ptr<Report> reportFor(const ReplaySettings& s, const std::string& device,
                                  const Console& console) {
  if (s.format == Format::kJson) return jsonReport(console.out, s);
  if (s.format == Format::kCsv) return csvReport(console.out, s);
  return tableReport(console.out, s, device, console.colours);
}

/// The receivers of the measurements.
struct Listeners {
  Report& report;
  Plot* plot;  ///< may be null
  Progress& progress;
  Console& console;
};

void show(const Measurement& row, const Listeners& to) {
  to.progress.clear();
  to.report.row(row);
  if (to.plot != nullptr) to.plot->row(row);
  if (row.ok() || to.report.explainsFailures()) return;
  to.console.err << fmt::format("cistern: {}, policy {}: {}\n", printable(row.label()), row.policy,
                                printableLines(row.failure));
}

ExitStatus replayAll(const std::vector<Script>& scripts, const ReplaySettings& s,
                     const Listeners& to) {
  ExitStatus status = kDone;
  const double rows = double((scripts.size() + s.recipes.size()) * s.policies.size());
  double done = 0;
  const auto replay_one = [&](const Script& script) {
    if (to.plot != nullptr) to.plot->begin(script);
    for (const std::string& policy : s.policies) {
      const std::string what = fmt::format("{}, {}", script.name, policy);
      const auto on_progress = [&](double part) { to.progress.show((done + part) / rows, what); };
      const Measurement row = measure(script, policyKind(policy), s, on_progress);
      show(row, to);
      if (!row.ok()) status = kNotDone;
      ++done;
    }
  };
  for (const Script& script : scripts) replay_one(script);
  for (const programs::Recipe& recipe : s.recipes) {  // each made when its turn comes
    replay_one(makeScript(programs::generate(recipe)));
  }
  return status;
}

void writePlot(Plot& plot, const ReplaySettings& s, const std::string& device, Console& console) {
  plot.write(device);
  if (s.format != Format::kTable) return;
  console.out << '\n' << wrapped(fmt::format("The picture is in {}.", printable(plot.path())));
}

}  // namespace

ExitStatus runReplay(ReplaySettings settings, Console& console) {
  settings.device = asksForSim(settings) ? "sim" : resolveDevice(settings.device);
  requireSense(settings);
  const std::string device = requireDevice(settings);
  std::optional<Plot> plot;
  if (!settings.plot.empty()) plot.emplace(settings);
  std::ofstream terminal = openedTerminal(settings.progress);
  Progress progress = terminal.is_open() ? Progress(terminal) : Progress(console);
  const std::vector<Script> scripts = readScripts(settings, progress, console);
  for (const std::string& note : settings.notes) console.err << "cistern: note: " << note << '\n';
  const auto report = reportFor(settings, device, console);
  report->begin();
  const ExitStatus status =
      replayAll(scripts, settings, {*report, plot ? &*plot : nullptr, progress, console});
  report->end();
  if (plot) writePlot(*plot, settings, device, console);
  return status;
}

}  // namespace cistern::command
