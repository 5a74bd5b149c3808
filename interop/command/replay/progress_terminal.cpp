#include "interop/command/replay/progress_terminal.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "interop/command/console.hpp"

namespace cistern::command {
namespace {

void requireTerminal(const std::string& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  const int why = errno;
  const bool terminal = file >= 0 && isatty(file) == 1;
  if (file >= 0) (void)::close(file);
  if (file < 0)
    throw UsageError(fmt::format("--progress {}: cannot be written: {}", path, std::strerror(why)));
  if (!terminal) throw UsageError(fmt::format("--progress {}: must be a terminal", path));
}

}  // namespace

std::ofstream openedTerminal(const std::string& path) {
  std::ofstream terminal;
  if (path.empty()) return terminal;
  requireTerminal(path);
  terminal.open(path, std::ios::app);
  return terminal;
}

}  // namespace cistern::command
