// Takes the command line apart, runs the command that it names, and turns what goes wrong into a
// message and an exit status.
#include "interop/command/run.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/command/commands.hpp"
#include "interop/trace/trace.hpp"

namespace cistern::command {
namespace {

using AddCommand = Command (*)(CLI::App& program);

constexpr std::array<AddCommand, 2> kCommands = {addReplay, addOptions};

constexpr const char* kDescription =
    "Cistern, a caching GPU memory allocator: replays what programs allocate, and says how much\n"
    "memory it takes. Every command says more with --help.";

ExitStatus complain(const Console& console, std::string_view message, ExitStatus status) {
  console.err << "cistern: " << message << '\n';
  return status;
}

// CLI11 has an exit code for each kind of mistake; here there is one for all.
ExitStatus explain(const CLI::App& program, const CLI::ParseError& error, const Console& console) {
  if (error.get_exit_code() == 0) {  // --help or --version
    (void)program.exit(error, console.out, console.err);
    return kDone;
  }
  return complain(console, fmt::format("{} (see --help)", error.what()), kBadUsage);
}

/// CLI11 would only say that a command is missing.
void requireKnownCommand(const CLI::App& program, const std::vector<std::string>& args) {
  if (args.empty() || args[0].rfind('-', 0) == 0) return;
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  if (std::find(names.begin(), names.end(), args[0]) != names.end()) return;
  throw CLI::ExtrasError(
      fmt::format("unknown command '{}': must be one of {}", args[0], fmt::join(names, ", ")),
      CLI::ExitCodes::ExtrasError);
}

ExitStatus runCommand(const Command& command, Console& console) {
  try {
    return command.run(console);
  } catch (const UsageError& error) {
    return complain(console, error.what(), kBadUsage);
  } catch (const OptionError& error) {
    return complain(console, error.what(), kBadUsage);
  } catch (const trace::TraceError& error) {
    return complain(console, error.what(), kBadUsage);
  } catch (const Error& error) {
    return complain(console, error.what(), kNotDone);
  }
}

}  // namespace

int run(const std::vector<std::string>& args, Console console) {
  CLI::App program(kDescription, "cistern");
  program.set_version_flag("--version", "cistern " CISTERN_VERSION, "Print the version and exit");
  program.set_help_flag("-h,--help", "Print this help and exit");
  program.require_subcommand(1);
  std::vector<Command> commands;
  commands.reserve(kCommands.size());
  for (const AddCommand add : kCommands) commands.push_back(add(program));
  try {
    requireKnownCommand(program, args);
    program.parse(std::vector<std::string>(args.rbegin(), args.rend()));  // CLI11 pops the back
  } catch (const CLI::ParseError& error) {
    return explain(program, error, console);
  }
  for (const Command& command : commands) {
    if (command.parser->parsed()) return runCommand(command, console);
  }
  return kBadUsage;
}

int run(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  return run(args, Console{out, err});
}

}  // namespace cistern::command
