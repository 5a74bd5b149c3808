// `cistern doctor`: what this machine has, whether Cistern works there, and what that means.
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/printable.hpp"
#include "allocator/device/backends.hpp"
#include "cistern/options.hpp"
#include "interop/command/commands.hpp"
#include "interop/command/doctor/self_test.hpp"
#include "interop/command/launch/child.hpp"

namespace cistern::command {
namespace {

constexpr int kMostDevices = 64;

// The description that the kernel's module gives of itself: the first line.
std::string nvidiaModule() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  return std::getline(file, line) ? line : "none";
}

struct Found {
  std::vector<std::unique_ptr<Device>> devices;
  std::string why_not;  ///< what ended the search
};

Found devicesOf(std::string_view backend, int most) {
  Found found;
  try {
    while (int(found.devices.size()) < most)
      found.devices.push_back(openDevice(backend, int(found.devices.size())));
  } catch (const Error& error) {
    found.why_not = error.what();
  }
  return found;
}

std::string peersOf(Device& device, std::size_t devices) {
  std::string peers;
  for (int other = 0; other < int(devices); ++other) {
    if (other == device.ordinal()) continue;
    const Result<bool> can = device.canAccessPeer(other);
    if (can.ok() && can.value()) peers += fmt::format("{}{}", peers.empty() ? "" : ", ", other);
  }
  return peers.empty() ? "none" : peers;
}

std::string memoryText(Device& device) {
  const Result<MemoryInfo> memory = device.memoryInfo();
  if (!memory) return memory.error().message();
  return fmt::format("{} of {} free", formatBytes(memory.value().free_bytes),
                     formatBytes(memory.value().total_bytes));
}

std::string pagesText(const VirtualMemoryCapability& pages) {
  if (pages.refused)
    return "the driver claims virtual memory management and refuses a page: memory comes in "
           "segments, "
           "which do not move";
  if (!pages.supported)
    return "no virtual memory management: memory comes in segments, which do not move";
  return fmt::format("pages of {} and more, which move instead of fragmenting",
                     formatBytes(pages.granularity));
}

const char* sharingText(Device& device) {
  if (device.virtualMemory().exportable)
    return "with those on Cistern (for others, `cistern run --ipc` leaves cudaMalloc to the "
           "driver)";
  if (device.interprocessSupported())
    return "the device can; Cistern's memory is not shared by cudaIpcGetMemHandle (`cistern run "
           "--ipc` leaves cudaMalloc to the driver)";
  return "the device cannot";
}

/// Whether all that was tried holds.
bool describe(Device& device, std::size_t devices, std::ostream& out) {
  out << fmt::format("{} {}: {}\n", device.backend(), device.ordinal(), printable(device.name()));
  out << fmt::format("  memory: {}\n", memoryText(device));
  out << fmt::format("  {}\n", pagesText(device.virtualMemory()));
  out << fmt::format("  peers: {}\n", peersOf(device, devices));
  out << fmt::format("  sharing with other processes: {}\n", sharingText(device));
  out << fmt::format("  sharing with other machines: {}\n",
                     device.virtualMemory().fabric ? "by fabric handles of pages"
                                                   : "none: no fabric is open to this process");
  bool well = true;
  for (const Finding& finding : selfTest(device)) {
    well &= finding.problem.empty();
    const char* const outcome = finding.skipped           ? "not here"
                                : finding.problem.empty() ? "yes"
                                                          : "NO: ";
    out << fmt::format("  {}: {}{}\n", finding.what, outcome, printable(finding.problem));
  }
  return well;
}

std::string runText(bool device) try {
  return fmt::format("{}, with {}", device ? "works" : "would work on a GPU",
                     printable(preloadLibrary().string()));
} catch (const Error& error) {
  return fmt::format("does not work: {}", printable(error.what()));
}

/// Whether every program that is started here would take its options from the environment.
bool describeOptions(std::ostream& out) try {
  (void)Options::fromEnvironment();
  const char* const conf = std::getenv("CISTERN_CONF");
  out << fmt::format("CISTERN_CONF: {}\n", conf ? printable(conf) : "not set");
  return true;
} catch (const OptionError& error) {
  out << fmt::format("{}\n", printable(error.what()));
  return false;
}

ExitStatus examine(const std::string& wanted, Console& console) {
  console.out << "NVIDIA's kernel module: " << printable(nvidiaModule()) << '\n';
  bool any = false, well = describeOptions(console.out);
  for (const Backend* const backend : backends()) {
    if (wanted.empty() ? backend->simulated : backend->name != wanted) continue;
    const Found found = devicesOf(backend->name, backend->simulated ? 1 : kMostDevices);
    for (const auto& device : found.devices)
      well &= describe(*device, found.devices.size(), console.out);
    if (found.devices.empty())
      console.out << fmt::format("{}: {}\n", backend->name, printable(found.why_not));
    any |= !found.devices.empty();
  }
  console.out << "cistern run: " << runText(any) << '\n';
  if (!any) console.out << "Without a GPU: `cistern replay`, and tests, on the simulated device.\n";
  return any && well ? kDone : kNotDone;
}

}  // namespace

Command addDoctor(CLI::App& program) {
  CLI::App* parser = program.add_subcommand(
      "doctor", "Say what this machine has, and try whether Cistern works there");
  const auto backend = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const Backend* const known : backends()) names.emplace_back(known->name);
  parser->add_option("--device", *backend, "Only this backend: " + backendNames())
      ->check(CLI::IsMember(names))
      ->type_name("BACKEND");
  return {parser, [backend](Console& console) { return examine(*backend, console); }};
}

}  // namespace cistern::command
