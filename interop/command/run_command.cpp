// `cistern run`: runs an unchanged program with its device memory from Cistern. Read next:
// launch/child.hpp, ../preload/README.md.
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "allocator/base/printable.hpp"
#include "allocator/device/open.hpp"
#include "interop/command/commands.hpp"
#include "interop/command/environment.hpp"
#include "interop/command/launch/child.hpp"
#include "interop/command/launch/launch_summary.hpp"
#include "interop/command/launch/records.hpp"
#include "interop/command/writable.hpp"
#include "interop/recording/formats/write_trace.hpp"

namespace cistern::command {
namespace {

// The trace file of the started process has the wanted name. Those of other processes are beside
// it, named by their numbers.
std::filesystem::path traceName(const std::string& wanted, const Account& account) {
  if (account.first) return wanted;
  const std::size_t suffix = wanted.find(".trace");
  const std::size_t at = suffix == std::string::npos ? wanted.size() : suffix;
  return wanted.substr(0, at) + "-" + account.number() + wanted.substr(at);
}

// A process that allocated nothing has no file, as its trace would be none. An older file of that
// name stays, so the user is told.
void writeTraces(const LaunchSettings& settings, const std::filesystem::path& folder,
                 const std::vector<Account>& accounts, Console& console) {
  bool some = false;
  bool first = false;
  for (const Account& account : accounts) {
    if (account.trace_events == 0) continue;
    recording::Recording recording = readRecording(folder, account);
    if (accounts.size() > 1) recording.name += " " + account.number();
    recording::writeTrace(recording, traceName(settings.trace, account));
    some = true;
    first = first || account.first;
  }
  if (first) return;
  const bool asked = std::any_of(accounts.begin(), accounts.end(), [](const Account& account) {
    return account.first && account.requested_peak > 0;
  });
  const std::string unwritten = fmt::format(
      "--trace {}: nothing was recorded, and this file is not written: the {}", settings.trace,
      asked ? "recording failed" : "program allocated no device memory through Cistern");
  if (!some) throw Error(unwritten);
  console.err << "cistern: " << printable(unwritten) << "; processes that it started did\n";
}

// Output that would be lost with the end of the program is written first, and a failure does not
// hinder the rest. The status is the program's, if that reports a failure.
template <class Write>
void orComplain(Console& console, ExitStatus& status, Write write) {
  try {
    write();
  } catch (const Error& error) {
    console.err << "cistern: " << printableLines(error.what()) << '\n';
    if (status == kDone) status = kNotDone;
  }
}

// The program may have removed the folder, or a clean-up below TMPDIR may have. Then there is no
// summary, and the status is the program's.
std::vector<Account> recordsThatAreLeft(const std::filesystem::path& folder, int first,
                                        Console& console) try {
  std::error_code none;
  if (!std::filesystem::is_directory(folder, none)) return {};
  return readRecords(folder, first);
} catch (const Error& error) {
  console.err << "cistern: there is no summary: " << printable(error.what()) << '\n';
  return {};
}

// The program's devices are its vendor's, and its memory can come from no other.
void requireVendorsBackend() {
  requireKnownBackend();
  if (const std::string named = backendOfEnvironment(); isSimulated(named))
    throw UsageError(
        fmt::format("CISTERN_BACKEND is {}, and a program runs on a GPU: unset it", named));
}

// Here, rather than in the program or when it has ended.
void requireSense(const LaunchSettings& settings) {
  if (settings.command.empty() || settings.command[0].empty())
    throw UsageError("a program is to be run: cistern run -- COMMAND (see --help)");
  requireVendorsBackend();
  requireApart(std::array{NamedFile{"--trace", settings.trace},
                          NamedFile{"--report", settings.report},
                          NamedFile{"--json", settings.json}});
  if (!settings.report.empty()) requireHistoryReport(settings);
  if (!settings.trace.empty()) requireWritable("--trace", settings.trace);
  if (!settings.json.empty()) requireWritable("--json", settings.json);
}

ExitStatus launch(LaunchSettings settings, Console& console) {
  requireSense(settings);
  settings.conf = confOf(settings);
  const RunFolder folder;
  const Ending ending = runChild(settings, preloadLibrary(), folder.path());
  (void)std::signal(SIGPIPE, SIG_IGN);  // a reader that has gone costs only the summary
  const std::vector<Account> accounts = recordsThatAreLeft(folder.path(), ending.pid, console);
  auto status = static_cast<ExitStatus>(ending.shellStatus());
  if (!settings.trace.empty()) {
    orComplain(console, status, [&] { writeTraces(settings, folder.path(), accounts, console); });
  }
  if (!settings.report.empty()) {
    orComplain(console, status, [&] { writeHistoryReport(settings, folder.path(), console); });
  }
  if (!settings.json.empty())
    orComplain(console, status,
               [&] { writeFile("--json", settings.json, summaryJson(accounts, ending)); });
  if (!settings.quiet) console.err << summaryText(accounts, ending, settings.stats);
  return status;
}

}  // namespace

Command addRun(CLI::App& program) {
  CLI::App* parser = program.add_subcommand(
      "run", "Run a CUDA or HIP program, as it is, with its memory from Cistern");
  const auto settings = std::make_shared<LaunchSettings>();
  // For --help: they do not come to the parser (run.cpp).
  parser
      ->add_option("command", settings->command,
                   "The program and its arguments; -- may stand before")
      ->type_name("COMMAND");
  parser->add_option("--conf", settings->conf, "Options of the allocator: see `cistern options`")
      ->type_name("NAME:VALUE,...");
  parser
      ->add_option("--overflow", settings->overflow,
                   "Host memory that serves requests when the device is full; slower there")
      ->check(kNotEmpty)
      ->type_name("SIZE");
  parser->add_option("--trace", settings->trace, "Record what it allocates, for `cistern replay`")
      ->check(kFileName)
      ->type_name("FILE.trace.gz");
  parser
      ->add_option("--report", settings->report,
                   "Record it with call stacks, and write the page of `cistern report`")
      ->check(kFileName)
      ->type_name("FILE.html");
  parser->add_option("--json", settings->json, "Write the summary to a file")
      ->check(kFileName)
      ->type_name("FILE");
  parser->add_flag("--stats", settings->stats, "A longer summary");
  parser->add_flag("--quiet", settings->quiet, "No summary on the standard error");
  parser->add_flag("--follow-children", settings->follow_children,
                   "Serve processes that it starts as well");
  parser->add_flag("--show-arguments", settings->show_arguments,
                   "Name processes by their whole command lines, which may hold secrets");
  parser->add_flag("--ipc", settings->ipc,
                   "Leave cudaMalloc (hipMalloc) to the driver, to share it with others");
  parser->add_flag("--strict", settings->strict,
                   "Reuse what cudaFree (hipFree) frees only when earlier work is done");
  parser->add_flag("--sleepable", settings->sleepable,
                   "Let `cistern sleep` empty its caches, over a unix socket");
  return {parser,
          [settings](Console& console) {
            settings->history = settings->history_stacks = !settings->report.empty();
            return launch(*settings, console);
          },
          &settings->command};
}

}  // namespace cistern::command
