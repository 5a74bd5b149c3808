// The whole `cistern` program as a function, so that tests can call it.
// Read next: commands.hpp, then the file of the command in question.
#pragma once

#include <string>
#include <vector>

#include "interop/command/console.hpp"

namespace cistern::command {

/// Runs one command line (without the program's name) and returns the exit status of console.hpp.
/// Results go to `console.out`, and every complaint, which begins with "cistern: ", to
/// `console.err`. A failure to write the output is a complaint as well, as soon as it is seen.
int run(const std::vector<std::string>& args, Console console);
int run(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

}  // namespace cistern::command
