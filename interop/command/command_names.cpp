#include "interop/command/command_names.hpp"

#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "interop/command/did_you_mean.hpp"

namespace cistern::command {

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

}  // namespace cistern::command
