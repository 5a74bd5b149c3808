// `cistern man` and `cistern completion bash`: what the build writes for an installation.
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "interop/command/commands.hpp"
#include "interop/command/manual/manual.hpp"

namespace cistern::command {

Command addMan(CLI::App& program) {
  CLI::App* parser = program.add_subcommand("man", "Print the manual's page, for man -l");
  return {parser, [&program](Console& console) {
            console.out << manPage(outlineOf(program));
            return kDone;
          }};
}

Command addCompletion(CLI::App& program) {
  CLI::App* parser =
      program.add_subcommand("completion", "Print a script that makes bash complete words");
  const auto shell = std::make_shared<std::string>();
  parser->add_option("shell", *shell, "bash")
      ->required()
      ->check(CLI::IsMember({"bash"}))
      ->type_name("SHELL");
  return {parser, [&program, shell](Console& console) {
            console.out << bashCompletion(outlineOf(program));
            return kDone;
          }};
}

}  // namespace cistern::command
