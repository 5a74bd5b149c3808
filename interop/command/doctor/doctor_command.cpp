// `cistern doctor`: what this machine has, whether Cistern works there, and what that means.
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "allocator/base/bytes.hpp"
#include "allocator/base/printable.hpp"
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

namespace {

std::string memoryText(const DeviceFindings& device) {
  if (!device.memory_problem.empty()) return device.memory_problem;
  return fmt::format("{} of {} free", formatBytes(device.memory.free_bytes),
                     formatBytes(device.memory.total_bytes));
}

std::string pagesText(const VirtualMemoryCapability& pages) {
  if (pages.refused)
    return "the driver claims virtual memory management and refuses a page: memory comes in "
           "segments, which do not move";
  if (!pages.supported)
    return "no virtual memory management: memory comes in segments, which do not move";
  return fmt::format("pages of {} and more, which move instead of fragmenting",
                     formatBytes(pages.granularity));
}

std::string sharingText(const DeviceFindings& device) {
  const std::string_view vendor = device.backend == "hip" ? "hip" : "cuda";
  if (device.pages.exportable)
    return fmt::format(
        "with those on Cistern (for others, `cistern run --ipc` leaves {}Malloc to the driver)",
        vendor);
  if (device.can_share_segments)
    return fmt::format(
        "the device can; Cistern's memory is not shared by {0}IpcGetMemHandle (`cistern run --ipc` "
        "leaves {0}Malloc to the driver)",
        vendor);
  return "the device cannot";
}

void printDevice(const DeviceFindings& device, std::ostream& out) {
  out << fmt::format("{} {}: {}\n", device.backend, device.ordinal, printable(device.name));
  out << fmt::format("  memory: {}\n", memoryText(device));
  out << fmt::format("  {}\n", pagesText(device.pages));
  out << fmt::format("  peers: {}\n", device.peers.empty()
                                          ? "none"
                                          : fmt::format("{}", fmt::join(device.peers, ", ")));
  out << fmt::format("  sharing with other processes: {}\n", sharingText(device));
  out << fmt::format("  sharing with other machines: {}\n",
                     device.pages.fabric ? "by fabric handles of pages"
                                         : "none: no fabric is open to this process");
  for (const Finding& finding : device.tests) {
    const char* const outcome = finding.skipped           ? "not here"
                                : finding.problem.empty() ? "yes"
                                                          : "NO: ";
    out << fmt::format("  {}: {}{}\n", finding.what, outcome, printable(finding.problem));
  }
}

void printEnvironment(const std::vector<Setting>& settings, std::ostream& out) {
  bool has_conf = false;
  for (const Setting& setting : settings) {
    has_conf |= setting.name == "CISTERN_CONF";
    if (!setting.problem.empty()) {
      out << printable(setting.problem) << '\n';
    } else if (!setting.warning.empty()) {
      out << "warning: " << printable(setting.warning) << '\n';
    } else {
      out << fmt::format("{}: {}\n", printable(setting.name), printable(setting.value));
    }
  }
  if (!has_conf) out << "CISTERN_CONF: not set\n";
}

std::string runText(const Examination& all) {
  if (!all.run_problem.empty()) return fmt::format("does not work: {}", printable(all.run_problem));
  return fmt::format("{}, with {}", all.anyDevice() ? "works" : "would work on a GPU",
                     printable(all.run_library));
}

}  // namespace

void printAsText(const Examination& all, std::ostream& out) {
  out << "NVIDIA's kernel module: " << printable(all.kernel_module.value_or("none")) << '\n';
  printEnvironment(all.environment, out);
  for (const BackendFindings& backend : all.backends) {
    for (const DeviceFindings& device : backend.devices) printDevice(device, out);
    if (backend.devices.empty())
      out << fmt::format("{}: {}\n", backend.name, printable(backend.missing));
    if (!backend.runtime.empty())
      out << fmt::format("{} runtime: {}\n", backend.name, printable(backend.runtime));
  }
  out << "cistern run: " << runText(all) << '\n';
  if (!all.anyDevice())
    out << "Without a GPU: `cistern replay`, and tests, on the simulated device.\n";
}

namespace {

using Json = nlohmann::ordered_json;

Json textOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json settingJson(const Setting& setting) {
  return {{"name", setting.name},
          {"value", setting.value},
          {"problem", textOrNull(setting.problem)},
          {"warning", textOrNull(setting.warning)}};
}

Json testJson(const Finding& test) {
  return {{"what", test.what}, {"skipped", test.skipped}, {"problem", textOrNull(test.problem)}};
}

template <class Items, class One>
Json listOf(const Items& items, One one) {
  Json list = Json::array();
  for (const auto& item : items) list.push_back(one(item));
  return list;
}

Json deviceJson(const DeviceFindings& device) {
  const bool told = device.memory_problem.empty();
  const bool pages = device.pages.supported && !device.pages.refused;
  Json json;
  json["ordinal"] = device.ordinal;
  json["name"] = device.name;
  json["total_bytes"] = told ? Json(device.memory.total_bytes) : Json(nullptr);
  json["free_bytes"] = told ? Json(device.memory.free_bytes) : Json(nullptr);
  json["memory_problem"] = textOrNull(device.memory_problem);
  json["page_bytes"] = pages ? Json(device.pages.granularity) : Json(nullptr);
  json["pages_refused"] = device.pages.refused;
  json["peers"] = device.peers;
  json["shares_pages"] = device.pages.exportable;
  json["shares_segments"] = device.can_share_segments;
  json["fabric"] = device.pages.fabric;
  json["tests"] = listOf(device.tests, testJson);
  return json;
}

Json backendJson(const BackendFindings& backend) {
  return {{"name", backend.name},
          {"missing", textOrNull(backend.missing)},
          {"runtime", textOrNull(backend.runtime)},
          {"devices", listOf(backend.devices, deviceJson)}};
}

}  // namespace

void printAsJson(const Examination& all, std::ostream& out) {
  Json json;
  json["version"] = CISTERN_VERSION;
  json["ok"] = all.ok();
  json["kernel_module"] = all.kernel_module ? Json(*all.kernel_module) : Json(nullptr);
  json["environment"] = listOf(all.environment, settingJson);
  json["backends"] = listOf(all.backends, backendJson);
  json["run"] = {{"library", textOrNull(all.run_library)},
                 {"problem", textOrNull(all.run_problem)}};
  const bool ascii_only = true;  // nothing of a name acts on a terminal
  out << json.dump(2, ' ', ascii_only, Json::error_handler_t::replace) << '\n';
}

}  // namespace cistern::command
