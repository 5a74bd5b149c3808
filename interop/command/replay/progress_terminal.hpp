// --progress: the terminal that the progress line goes to.
#pragma once

#include <fstream>
#include <string>

namespace cistern::command {

/// The terminal at `path`, opened; not open if `path` is empty. Throws UsageError if it cannot be
/// written or is no terminal: a line that moves spoils a file.
std::ofstream openedTerminal(const std::string& path);

}  // namespace cistern::command
