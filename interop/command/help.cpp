#include "interop/command/help.hpp"

#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/command/commands.hpp"
#include "interop/command/did_you_mean.hpp"
#include "interop/command/wrap.hpp"

namespace cistern::command {
namespace {

constexpr std::size_t kCommandColumn = 14;  ///< the longest name is "completion"
constexpr std::size_t kOptionColumn = 28;

/// A name, and what it stands for from `column` on. A line of the text is a paragraph: what does
/// not fit goes on below it, two columns further in.
std::string row(const std::string& name, std::string_view text, std::size_t column) {
  std::string rows;
  std::string begin = "  " + name;
  if (begin.size() < column) {
    begin.resize(column, ' ');
  } else {
    rows = begin + '\n';
    begin.assign(column, ' ');
  }
  while (true) {
    const std::string_view line = text.substr(0, text.find('\n'));
    rows += wrapped(line, std::string(column + 2, ' '), begin);
    if (line.size() == text.size()) return rows;
    text.remove_prefix(line.size() + 1);
    begin.assign(column, ' ');
  }
}

}  // namespace

std::string HelpFormat::make_subcommand(const CLI::App* command) const {
  return row(command->get_name(), command->get_description(), kCommandColumn);
}

std::string HelpFormat::make_option(const CLI::Option* option, bool positional) const {
  return row(make_option_name(option, positional) + make_option_opts(option),
             make_option_desc(option), kOptionColumn);
}

std::vector<const CLI::App*> commandsOf(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

std::vector<std::string> commandNames(const CLI::App& program) {
  std::vector<std::string> names;
  for (const CLI::App* command : commandsOf(program)) names.push_back(command->get_name());
  return names;
}

const CLI::App* findCommand(const CLI::App& program, const std::string& name) {
  for (const CLI::App* command : commandsOf(program)) {
    if (command->get_name() == name) return command;
  }
  return nullptr;
}

std::string unknownCommand(const CLI::App& program, const std::string& name) {
  const std::vector<std::string> names = commandNames(program);
  const std::vector<std::string_view> views(names.begin(), names.end());
  return fmt::format("unknown command '{}': must be one of {}{}", name, fmt::join(names, ", "),
                     didYouMean(name, views));
}

// `cistern help` and `cistern version`: the flags --help and --version, as commands.

static ExitStatus printHelp(const CLI::App& program, const std::string& name, Console& console) {
  if (name.empty()) {  // App::help would go on to the command that was parsed, which is this one
    console.out << program.get_formatter()->make_help(&program, program.get_name(),
                                                      CLI::AppFormatMode::Normal);
    return kDone;
  }
  const CLI::App* const command = findCommand(program, name);
  if (command == nullptr) throw UsageError(unknownCommand(program, name));
  console.out << command->help(program.get_name());
  return kDone;
}

Command addHelp(CLI::App& program) {
  CLI::App* parser = program.add_subcommand("help", "Say what a command does, and its options");
  const auto name = std::make_shared<std::string>();
  parser->add_option("command", *name, "The command; else all of them in short")
      ->check(kNotEmpty)
      ->type_name("COMMAND");
  return {parser,
          [&program, name](Console& console) { return printHelp(program, *name, console); }};
}

Command addVersion(CLI::App& program) {
  CLI::App* parser = program.add_subcommand("version", "Print the version");
  return {parser, [](Console& console) {
            console.out << "cistern " CISTERN_VERSION "\n";
            return kDone;
          }};
}

}  // namespace cistern::command
