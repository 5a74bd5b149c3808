// The list of commands. To add one: write its file, declare its function here, and name it in the
// table of run.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "interop/command/console.hpp"

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
Command addDoctor(CLI::App& program);      // doctor/doctor_command.cpp
Command addHelp(CLI::App& program);        // help.cpp
Command addVersion(CLI::App& program);     // help.cpp
Command addMan(CLI::App& program);         // manual/manual.cpp
Command addCompletion(CLI::App& program);  // manual/manual.cpp

// The rule for options that name something.

/// An empty text is no value, and not the same as none given.
inline const CLI::Validator kNotEmpty(
    [](std::string& text) { return text.empty() ? "needs a value, and '' is none" : ""; }, "");

/// An option in the place of a file's name is no name: the name was forgotten.
inline const CLI::Validator kFileName(
    [](std::string& text) {
      if (text.empty()) return std::string("needs a value, and '' is none");
      if (text[0] != '-') return std::string();
      return "needs a value, and '" + text + "' looks like an option (a file: ./" + text + ")";
    },
    "");

}  // namespace cistern::command
