// The list of commands. To add one: write its file, declare its function here, and name it in the
// table of run.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "interop/command/console.hpp"

namespace CLI {
class App;
}

namespace cistern::command {

/// One command as the command line knows it: its part of the parser, and what to do if it is named.
struct Command {
  CLI::App* parser = nullptr;
  std::function<ExitStatus(Console&)> run;  ///< may throw; run.cpp says what becomes of it
  /// For a program and its arguments, which come behind the command's own options; null: there is
  /// none to come.
  std::vector<std::string>* program = nullptr;
};

Command addReplay(CLI::App& program);      // replay_command.cpp
Command addGenerate(CLI::App& program);    // generate_command.cpp
Command addOptions(CLI::App& program);     // options_command.cpp
Command addReport(CLI::App& program);      // report_command.cpp
Command addRun(CLI::App& program);         // run_command.cpp
Command addSleep(CLI::App& program);       // sleep_command.cpp
Command addWake(CLI::App& program);        // sleep_command.cpp
Command addDoctor(CLI::App& program);      // doctor_command.cpp
Command addHelp(CLI::App& program);        // help_command.cpp
Command addVersion(CLI::App& program);     // help_command.cpp
Command addMan(CLI::App& program);         // manual_commands.cpp
Command addCompletion(CLI::App& program);  // manual_commands.cpp

}  // namespace cistern::command
