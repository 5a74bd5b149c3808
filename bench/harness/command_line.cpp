#include "bench/harness/command_line.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>

#include <fmt/format.h>

#include "allocator/base/text.hpp"
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

std::optional<std::size_t> CommandLine::takeCount(std::string_view name) {
  const auto text = take(name);
  if (!text) return std::nullopt;
  const auto count = readCount(*text);
  if (!count || *count == 0)
    throw InvalidArgument(fmt::format("--{} needs a number above 0", name));
  return std::size_t(*count);
}

// --benchmark_... stays, for Google Benchmark.
void CommandLine::dropForOthers() {
  for (const char* const name : {"device", "peers"}) (void)take(name);
}

std::vector<std::string> CommandLine::takePaths() {
  dropForOthers();
  const auto paths = std::stable_partition(arguments_.begin(), arguments_.end(),
                                           [](const auto& one) { return one.starts_with('-'); });
  std::vector<std::string> taken(paths, arguments_.end());
  arguments_.erase(paths, arguments_.end());
  return taken;
}

void CommandLine::requireAllTaken(std::string_view allowed) {
  dropForOthers();
  for (const std::string& other : arguments_) {
    if (other.starts_with("--benchmark_")) continue;
    throw InvalidArgument(fmt::format("unknown argument '{}': allowed: {}", other, allowed));
  }
}

int runProgram(int argc, char** argv, void (*run)(CommandLine&)) noexcept {
  try {
    CommandLine line(argc, argv);
    run(line);
    return 0;
  } catch (const std::exception& error) {
    const std::string_view path = argv[0];
    fmt::print(stderr, "{}: {}\n", path.substr(path.rfind('/') + 1), error.what());
    return 2;
  }
}

}  // namespace cistern::bench
