#include <ostream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "allocator/base/bytes.hpp"
#include "allocator/base/printable.hpp"
#include "interop/command/doctor/examination.hpp"

namespace cistern::command {
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

}  // namespace cistern::command
