// `cistern doctor`: what this machine has, whether Cistern works there, and what that means.
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "allocator/device/open.hpp"
#include "interop/command/commands.hpp"
#include "interop/command/doctor/examination.hpp"

namespace cistern::command {
namespace {

struct DoctorArguments {
  std::string backend;
  bool json = false;
};

/// The backend to examine; empty for each vendor's. A wrong CISTERN_BACKEND is among the findings.
std::string wantedBackend(const std::string& option) try {
  if (!option.empty()) return option;
  const std::string named = backendOfEnvironment();
  return named == "auto" ? "" : named;
} catch (const InvalidArgument&) {
  return "";
}

ExitStatus examine(const DoctorArguments& a, Console& console) {
  const Examination all = examineMachine(wantedBackend(a.backend));
  a.json ? printAsJson(all, console.out) : printAsText(all, console.out);
  return all.ok() ? kDone : kNotDone;
}

}  // namespace

Command addDoctor(CLI::App& program) {
  CLI::App* parser = program.add_subcommand(
      "doctor", "Say what this machine has, and try whether Cistern works there");
  const auto arguments = std::make_shared<DoctorArguments>();
  std::vector<std::string> names;
  for (const Backend* const known : backends()) names.emplace_back(known->name);
  parser->add_option("--device", arguments->backend, "Only this backend: " + backendNames())
      ->check(CLI::IsMember(names))
      ->type_name("BACKEND");
  parser->add_flag("--json", arguments->json, "The same as one JSON object");
  return {parser, [arguments](Console& console) { return examine(*arguments, console); }};
}

}  // namespace cistern::command
