// The commands of the program by name, and what --help prints.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace cistern::command {

/// All of them, in the order in which they were added.
std::vector<const CLI::App*> commandsOf(const CLI::App& program);

/// The names of all of them.
std::vector<std::string> commandNames(const CLI::App& program);

/// Null: there is none of that name.
const CLI::App* findCommand(const CLI::App& program, const std::string& name);

/// The message about a name that is none: what there is, and which of it is near.
std::string unknownCommand(const CLI::App& program, const std::string& name);

// What --help prints, within the page's width: CLI11's own formatter breaks no line.

class HelpFormat final : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override;
  std::string make_option(const CLI::Option* option, bool positional) const override;
};

}  // namespace cistern::command
