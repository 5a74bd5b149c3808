#include "bench/harness/command_line.hpp"

#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "cistern/error.hpp"

namespace cistern::bench {

std::optional<std::string> CommandLine::take(std::string_view name) {
  const std::string flag = "--" + std::string(name);
  for (auto at = arguments_.begin(); at != arguments_.end(); ++at) {
    if (at->starts_with(flag + "=")) {
      std::string value = at->substr(flag.size() + 1);
      arguments_.erase(at);
      return value;
    }
    if (*at != flag) continue;
    if (at + 1 == arguments_.end()) throw InvalidArgument(flag + " needs a value");
    std::string value = at[1];
    arguments_.erase(at, at + 2);
    return value;
  }
  return std::nullopt;
}

int runProgram(int argc, char** argv, void (*run)(CommandLine&)) noexcept {
  try {
    CommandLine line(argc, argv);
    run(line);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}

}  // namespace cistern::bench
