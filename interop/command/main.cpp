// The `cistern` program. All of it is in run.hpp.
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "interop/command/run.hpp"

namespace {

// The next file that is opened would get the number of a closed standard stream, and would be
// written to in its place. The file that stands there now refuses writes.
void occupyClosedStreams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) >= 0 || errno != EBADF) continue;
    (void)open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

bool wantsColours() {
  const char* no = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (no == nullptr || *no == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

}  // namespace

int main(int argc, char** argv) try {
  occupyClosedStreams();
  (void)std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is an error like any other
  std::ios::sync_with_stdio(false);
  const bool terminal = isatty(STDERR_FILENO) == 1;
  return cistern::command::run({argv + 1, argv + argc},
                               {std::cout, std::cerr, terminal, wantsColours()});
} catch (const std::bad_alloc&) {
  std::cerr << "cistern: this machine has too little memory for that\n";
  return 1;
} catch (const std::exception& error) {
  std::cerr << "cistern: " << error.what() << '\n';
  return 1;
}
