#include "interop/command/overflow/run_overflow.hpp"

#include <fstream>

#include <fmt/format.h>

#include "allocator/device/backends.hpp"
#include "allocator/device/open.hpp"
#include "interop/command/overflow/measure_overflow.hpp"
#include "interop/command/overflow/overflow_policy.hpp"
#include "interop/command/overflow/overflow_printer.hpp"
#include "interop/command/replay/progress_terminal.hpp"
#include "interop/command/replay/read_scripts.hpp"
#include "interop/command/replay/stage.hpp"

namespace cistern::command {
namespace {

/// The name of the simulated device. "auto" means it here, unless the environment names another.
std::string requireSimulated(const std::string& device) {
  const bool open = device == "auto" && backendOfEnvironment() == "auto";
  const std::string name = open ? "sim" : resolveDevice(device);
  if (isSimulated(name)) return name;
  throw UsageError(fmt::format("--overflow needs --device sim; the device is {}", name));
}

// A rule that the options make impossible is refused before anything is printed.
void requireHostPages(const ReplaySettings& settings, const OverflowRule& rule) try {
  Stage stage(settings, 0);
  (void)rule.make(stage.device(), settings.options);
} catch (const Error& error) {
  throw Error(fmt::format("--overflow, rule {}: {}", rule.name, error.what()));
}

/// Prints one program's cases. Returns whether each rule served it on each device.
bool showProgram(const Script& script, const ReplaySettings& settings, OverflowPrinter& printer,
                 Progress& progress) {
  const OverflowProgram program = overflowProgram(script);
  printer.program(program);
  bool ok = true;
  for (const unsigned share : kShares) {
    const std::string what = fmt::format("{}, {} %", script.name, share);
    const OverflowCase found = measureOverflow(script, program, share, settings,
                                               [&](double done) { progress.show(done, what); });
    progress.clear();
    printer.row(found);
    for (const OverflowRun& run : found.runs) ok = ok && run.ok();
  }
  return ok;
}

}  // namespace

ExitStatus runOverflow(ReplaySettings settings, Console& console) {
  settings.device = requireSimulated(settings.device);
  for (const OverflowRule& rule : overflowRules()) requireHostPages(settings, rule);
  std::ofstream terminal = openedTerminal(settings.progress);
  Progress progress = terminal.is_open() ? Progress(terminal) : Progress(console);
  const std::vector<Script> scripts = readScripts(settings, progress, console);
  for (const Script& script : scripts) (void)overflowProgram(script);
  const auto printer = settings.format == Format::kJson
                           ? overflowJson(console.out, settings)
                           : overflowTable(console.out, settings, console.colours);
  printer->begin();
  bool ok = true;
  for (const Script& script : scripts) ok = showProgram(script, settings, *printer, progress) && ok;
  for (const programs::Recipe& recipe : settings.recipes) {
    const Script script = makeScript(programs::generate(recipe));
    ok = showProgram(script, settings, *printer, progress) && ok;
  }
  printer->end();
  return ok ? kDone : kNotDone;
}

}  // namespace cistern::command
