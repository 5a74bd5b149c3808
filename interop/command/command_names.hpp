// The commands of the program by name.
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

}  // namespace cistern::command
