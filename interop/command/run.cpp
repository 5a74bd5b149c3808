// Takes the command line apart, runs the command that it names, and turns what goes wrong into a
// message and an exit status.
#include "interop/command/run.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ios>
#include <memory>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocator/base/printable.hpp"
#include "interop/command/commands.hpp"
#include "interop/command/did_you_mean.hpp"
#include "interop/command/help.hpp"
#include "interop/trace/trace_error.hpp"

namespace cistern::command {
namespace {

using AddCommand = Command (*)(CLI::App& program);

constexpr std::array<AddCommand, 12> kCommands = {
    addReplay,   addReport,  addRun,  addSleep,   addWake, addDoctor,
    addGenerate, addOptions, addHelp, addVersion, addMan,  addCompletion};

constexpr const char* kDescription =
    "Cistern, a caching GPU memory allocator: replays what programs allocate, and\n"
    "says how much memory it takes. `cistern help COMMAND` says more of a command.";

ExitStatus complain(const Console& console, std::string_view message, ExitStatus status) {
  console.err << "cistern: " << printable(message) << '\n';
  return status;
}

// ---- The command line ---------------------------------------------------------------------------

std::string hint(std::string_view given, const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  return didYouMean(given, views);
}

std::vector<std::string> optionsOf(const CLI::App& parser) {
  std::vector<std::string> names;
  for (const CLI::Option* option : parser.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// The command that was named, else the program itself.
const CLI::App& namedParser(const CLI::App& program) {
  for (const CLI::App* command : commandsOf(program)) {
    if (command->parsed()) return *command;
  }
  return program;
}

/// The message about an option that stands before the command.
std::string misplaced(const CLI::App& program, const std::string& option) {
  for (const CLI::App* command : commandsOf(program)) {
    if (command->get_option_no_throw(option) == nullptr) continue;
    return fmt::format("{} comes after the command: cistern {} {}", option, command->get_name(),
                       option);
  }
  return fmt::format("unknown option '{}'{}", option, hint(option, optionsOf(program)));
}

/// The message about the first argument that nothing uses; empty if all are used.
std::string unexpected(const CLI::App& program) {
  const std::vector<std::string> all = program.remaining(true);
  if (all.empty()) return {};
  const std::string option = all.front().substr(0, all.front().find('='));
  if (option.rfind('-', 0) != 0) return fmt::format("unexpected argument '{}'", all.front());
  if (!program.remaining(false).empty()) return misplaced(program, option);
  return fmt::format("unknown option '{}'{}", option,
                     hint(option, optionsOf(namedParser(program))));
}

// CLI11 has an exit code for each kind of mistake; here there is one for all.
ExitStatus explain(const CLI::App& program, const CLI::ParseError& error, const Console& console) {
  if (error.get_exit_code() == 0) {  // --help or --version
    (void)program.exit(error, console.out, console.err);
    return kDone;
  }
  const std::string what = unexpected(program);  // CLI11 would have no suggestion
  return complain(console, fmt::format("{} (see --help)", what.empty() ? error.what() : what),
                  kBadUsage);
}

/// CLI11 would only say that a command is missing.
void requireKnownCommand(const CLI::App& program, const std::vector<std::string>& args) {
  if (args.empty()) {
    throw CLI::ParseError(
        fmt::format("no command is given: it is one of {}", fmt::join(commandNames(program), ", ")),
        CLI::ExitCodes::RequiredError);
  }
  if (args[0].rfind('-', 0) == 0 || findCommand(program, args[0]) != nullptr) return;
  throw CLI::ParseError(unknownCommand(program, args[0]), CLI::ExitCodes::InvalidError);
}

/// CLI11 would take the argument behind "--capacity=" for its value, and "--json=2" for two flags.
void requireValues(const CLI::App& program, const std::vector<std::string>& args) {
  const CLI::App* const command = findCommand(program, args[0]);
  for (const std::string& argument : args) {
    const std::size_t equals = argument.find('=');
    if (argument == "--") return;
    if (argument.rfind("--", 0) != 0 || equals == argument.npos) continue;
    const std::string name = argument.substr(0, equals), value = argument.substr(equals + 1);
    const CLI::Option* const option = command ? command->get_option_no_throw(name) : nullptr;
    const bool is_flag = option != nullptr && option->get_items_expected_max() == 0;
    if (!value.empty() && !is_flag) continue;
    throw CLI::ParseError(is_flag ? fmt::format("{} takes no value, and '{}' is given", name, value)
                                  : fmt::format("{} needs a value, and '' is none", name),
                          CLI::ExitCodes::InvalidError);
  }
}

// How many arguments the option takes, with itself.
std::size_t widthOf(const CLI::App& parser, const std::string& argument) {
  if (argument.find('=') != argument.npos) return 1;
  const CLI::Option* const option = parser.get_option_no_throw(argument);
  return option == nullptr || option->get_items_expected_max() == 0 ? 1 : 2;
}

/// CLI11 would make two of "[a,b]".
std::vector<std::string> withoutLists(std::vector<std::string> args) {
  for (std::string& arg : args) {
    if (arg.rfind('[', 0) == 0) arg.insert(0, "./");
  }
  return args;
}

/// The arguments for the parser. A program that is to be run has arguments of its own, which the
/// parser must not take apart. They begin behind `--`, or with the first argument that is no
/// option.
std::vector<std::string> ownArguments(const std::vector<std::string>& args,
                                      const std::vector<Command>& commands) {
  const auto named = std::find_if(commands.begin(), commands.end(), [&](const Command& command) {
    return command.parser->get_name() == args[0];
  });
  if (named == commands.end() || named->program == nullptr) return withoutLists(args);
  std::size_t end = 1;
  while (end < args.size() && args[end] != "--" && args[end].rfind('-', 0) == 0)
    end += widthOf(*named->parser, args[end]);
  end = std::min(end, args.size());
  const std::size_t begin = end < args.size() && args[end] == "--" ? end + 1 : end;
  named->program->assign(args.begin() + std::ptrdiff_t(begin), args.end());
  return {args.begin(), args.begin() + std::ptrdiff_t(end)};
}

// ---- What is run --------------------------------------------------------------------------------

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
    console.err << "cistern: " << printableLines(error.what()) << '\n';
    return kNotDone;
  }
}

ExitStatus runLine(const std::vector<std::string>& args, Console& console) {
  CLI::App program(kDescription, "cistern");
  program.formatter(std::make_shared<HelpFormat>());  // which the commands inherit
  program.set_version_flag("-V,--version", "cistern " CISTERN_VERSION,
                           "Print the version and exit");
  program.set_help_flag("-h,--help", "Print this help and exit");
  program.require_subcommand(1);
  std::vector<Command> commands;
  commands.reserve(kCommands.size());
  for (const AddCommand add : kCommands) commands.push_back(add(program));
  try {
    requireKnownCommand(program, args);
    const std::vector<std::string> own = ownArguments(args, commands);
    requireValues(program, own);
    program.parse(std::vector<std::string>(own.rbegin(), own.rend()));  // CLI11 pops the back
  } catch (const CLI::ParseError& error) {
    return explain(program, error, console);
  }
  for (const Command& command : commands) {
    if (command.parser->parsed()) return runCommand(command, console);
  }
  return kBadUsage;
}

/// A stream that throws, and so ends a long replay at the first row that nobody can read. It no
/// longer throws when the program ends, because nobody would catch it there.
class Throwing {
 public:
  explicit Throwing(std::ostream& stream) : stream_(stream) {
    stream_.exceptions(std::ios::badbit | std::ios::failbit);
  }
  ~Throwing() { stream_.exceptions(std::ios::goodbit); }
  Throwing(const Throwing&) = delete;
  Throwing& operator=(const Throwing&) = delete;

 private:
  std::ostream& stream_;
};

}  // namespace

int run(const std::vector<std::string>& args, Console console) try {
  const Throwing throwing(console.out);
  const ExitStatus status = runLine(args, console);
  console.out.flush();
  return status;
} catch (const std::ios::failure&) {
  const std::string why = std::strerror(errno);
  return complain(console, fmt::format("the output cannot be written: {}", why), kNotDone);
}

int run(const std::vector<std::string>& args, std::ostream& out, std::ostream& err) {
  return run(args, Console{out, err});
}

}  // namespace cistern::command
