// `cistern sleep` and `cistern wake`: a whole process, as it is, gives its device memory back for a
// while. Read next: sleep/whole_process.hpp.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocator/base/printable.hpp"
#include "allocator/device/open.hpp"
#include "interop/command/commands.hpp"
#include "interop/command/environment.hpp"
#include "interop/command/sleep/saving_driver.hpp"

namespace cistern::command {
namespace {

struct SleepArguments {
  std::vector<std::string> processes;
  double timeout = 300;
};

/// The differences of the two commands.
struct Verb {
  void (*require)(const SavingDriver&, const NamedProcess&);
  std::string (*apply)(const SavingDriver&, const NamedProcess&, std::chrono::milliseconds);
};

std::vector<pid_t> numbersOf(const SleepArguments& arguments) {
  std::vector<pid_t> numbers;
  for (const std::string& text : arguments.processes) {
    const pid_t number = processNumber(text);
    if (std::ranges::find(numbers, number) != numbers.end())
      throw UsageError(fmt::format("process {} is named twice", number));
    numbers.push_back(number);
  }
  return numbers;
}

void requireNvidia() {
  requireKnownBackend();
  const std::string named = backendOfEnvironment();
  if (named != "auto" && named != "cuda")
    throw UsageError(
        fmt::format("CISTERN_BACKEND is {}, and NVIDIA's driver alone can save a "
                    "process: must be auto or cuda",
                    named));
}

/// Throws what `apply` throws, with the processes that were not tried.
void applyInOrder(const Verb& verb, const SavingDriver& driver,
                  const std::vector<std::unique_ptr<NamedProcess>>& all,
                  std::chrono::milliseconds most, Console& console) {
  for (std::size_t i = 0; i < all.size(); ++i) try {
      console.out << verb.apply(driver, *all[i], most) << std::flush;
    } catch (const DriverStuck&) {
      throw;
    } catch (const Error& error) {
      std::vector<pid_t> untried;
      for (std::size_t j = i + 1; j < all.size(); ++j) untried.push_back(all[j]->number());
      if (untried.empty()) throw;
      throw Error(fmt::format("{}\nnot tried: {}", error.what(), fmt::join(untried, ", ")));
    }
}

ExitStatus runVerb(const Verb& verb, const SleepArguments& arguments, Console& console) try {
  const std::vector<pid_t> numbers = numbersOf(arguments);
  requireNvidia();
  std::vector<std::unique_ptr<NamedProcess>> all;
  for (const pid_t number : numbers) all.push_back(std::make_unique<NamedProcess>(number));
  const SavingDriver driver = loadSavingDriver();
  for (const auto& process : all) verb.require(driver, *process);
  const auto most = std::chrono::milliseconds(std::int64_t(arguments.timeout * 1000));
  applyInOrder(verb, driver, all, most, console);
  return kDone;
} catch (const DriverStuck& error) {
  console.err << "cistern: " << printable(error.what()) << std::endl;
  std::_Exit(kNotDone);  // a thread is in the driver, which has handlers for the exit
}

Command add(CLI::App& program, const char* name, const char* text, const char* processes,
            const Verb& verb) {
  CLI::App* parser = program.add_subcommand(name, text);
  const auto arguments = std::make_shared<SleepArguments>();
  parser->add_option("process", arguments->processes, processes)->required()->type_name("PID");
  parser
      ->add_option("--timeout", arguments->timeout, "The most that each may take; 300 if not given")
      ->check(CLI::Range(0.1, 86400.0))
      ->type_name("SECONDS");
  return {parser,
          [arguments, verb](Console& console) { return runVerb(verb, *arguments, console); }};
}

}  // namespace

Command addSleep(CLI::App& program) {
  return add(program, "sleep",
             "Put a whole CUDA process to sleep: its device memory goes to the host",
             "The numbers of running processes", {requireAwake, putToSleep});
}

Command addWake(CLI::App& program) {
  return add(program, "wake", "Wake a process that `cistern sleep` has put to sleep",
             "The numbers of processes that sleep", {requireAsleep, wake});
}

}  // namespace cistern::command
