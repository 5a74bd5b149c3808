// The `cistern` program. All of it is in run.hpp.
#include <exception>
#include <iostream>

#include <unistd.h>

#include "interop/command/run.hpp"

int main(int argc, char** argv) try {
  std::ios::sync_with_stdio(false);
  const bool terminal = isatty(STDERR_FILENO) == 1;
  return cistern::command::run({argv + 1, argv + argc}, {std::cout, std::cerr, terminal});
} catch (const std::exception& error) {
  std::cerr << "cistern: " << error.what() << '\n';
  return 1;
}
