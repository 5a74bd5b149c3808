// The benchmarks' own arguments; whatever is not taken is Google Benchmark's.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cistern::bench {

class CommandLine {
 public:
  CommandLine(int argc, char** argv) : arguments_(argv + 1, argv + argc), program_(argv[0]) {}

  /// Removes "--name=value" or "--name value" and returns the value. Throws InvalidArgument when
  /// the value is missing.
  std::optional<std::string> take(std::string_view name);
  std::string takeOr(std::string_view name, const std::string& otherwise) {
    return take(name).value_or(otherwise);
  }

  /// take() as a number. Throws InvalidArgument unless it is above 0.
  std::optional<std::size_t> takeCount(std::string_view name);

  /// Removes and returns the arguments that are no options.
  std::vector<std::string> takePaths();

  /// Refuses arguments that nobody has taken. `allowed` lists the program's own. Those that
  /// `./dev bench` gives to all programs alike (--device, --peers, --benchmark_...) may be left.
  /// Throws InvalidArgument that names the first of the others.
  void requireAllTaken(std::string_view allowed);

  const std::string& program() const { return program_; }
  std::vector<std::string>& rest() { return arguments_; }

 private:
  void dropForOthers();

  std::vector<std::string> arguments_;
  std::string program_;
};

/// What main() is: runs the program, prints its name and what it throws, and returns the exit
/// status: 2 then.
int runProgram(int argc, char** argv, void (*run)(CommandLine&)) noexcept;

}  // namespace cistern::bench
