// `cistern man` and `cistern completion SHELL`: what the build writes for an installation.
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include "interop/command/commands.hpp"
#include "interop/command/manual/manual.hpp"

namespace cistern::command {
namespace {

struct Shell {
  std::string_view name;
  std::string (*completion)(const Outline& outline);
};

constexpr std::array<Shell, 3> kShells = {
    {{"bash", bashCompletion}, {"zsh", zshCompletion}, {"fish", fishCompletion}}};

ExitStatus printCompletion(const CLI::App& program, const std::string& name, Console& console) {
  for (const Shell& shell : kShells) {
    if (shell.name == name) console.out << shell.completion(outlineOf(program));
  }
  return kDone;
}

}  // namespace

Command addMan(CLI::App& program) {
  CLI::App* parser = program.add_subcommand("man", "Print the manual's page, for man -l");
  return {parser, [&program](Console& console) {
            console.out << manPage(outlineOf(program));
            return kDone;
          }};
}

Command addCompletion(CLI::App& program) {
  CLI::App* parser =
      program.add_subcommand("completion", "Print a script that makes a shell complete words");
  const auto shell = std::make_shared<std::string>();
  parser->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("SHELL");
  return {parser, [&program, shell](Console& console) {
            return printCompletion(program, *shell, console);
          }};
}

}  // namespace cistern::command
