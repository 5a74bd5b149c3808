// `cistern help` and `cistern version`: the flags --help and --version, as commands.
#include <memory>
#include <string>

#include "interop/command/command_names.hpp"
#include "interop/command/commands.hpp"
#include "interop/command/not_empty.hpp"

namespace cistern::command {
namespace {

ExitStatus printHelp(const CLI::App& program, const std::string& name, Console& console) {
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

}  // namespace

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
