#include "interop/command/doctor/examination.hpp"

#include <algorithm>
#include <fstream>
#include <memory>
#include <string_view>

#include "allocator/device/backends.hpp"
#include "interop/command/launch/child.hpp"

namespace cistern::command {
namespace {

constexpr int kMostDevices = 64;

// The description that the kernel's module gives of itself: the first line.
std::optional<std::string> nvidiaModule() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
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

std::vector<int> peersOf(Device& device, std::size_t devices) {
  std::vector<int> peers;
  for (int other = 0; other < int(devices); ++other) {
    if (other == device.ordinal()) continue;
    const Result<bool> can = device.canAccessPeer(other);
    if (can.ok() && can.value()) peers.push_back(other);
  }
  return peers;
}

DeviceFindings examineDevice(Device& device, std::size_t devices) {
  DeviceFindings found;
  found.backend = device.backend();
  found.ordinal = device.ordinal();
  found.name = device.name();
  const Result<MemoryInfo> memory = device.memoryInfo();
  if (memory) {
    found.memory = memory.value();
  } else {
    found.memory_problem = memory.error().message();
  }
  found.pages = device.virtualMemory();
  found.peers = peersOf(device, devices);
  found.can_share_segments = device.interprocessSupported();
  found.tests = selfTest(device);
  return found;
}

BackendFindings examineBackend(const Backend& backend) {
  BackendFindings found;
  found.name = backend.name;
  const Found opened = devicesOf(backend.name, backend.simulated ? 1 : kMostDevices);
  for (const auto& device : opened.devices)
    found.devices.push_back(examineDevice(*device, opened.devices.size()));
  if (opened.devices.empty()) found.missing = opened.why_not;
  if (backend.runtime != nullptr) found.runtime = backend.runtime();
  return found;
}

}  // namespace

bool Examination::anyDevice() const {
  return std::any_of(backends.begin(), backends.end(),
                     [](const BackendFindings& backend) { return !backend.devices.empty(); });
}

bool Examination::ok() const {
  const auto has_problem = [](const auto& one) { return !one.problem.empty(); };
  if (std::any_of(environment.begin(), environment.end(), has_problem)) return false;
  for (const BackendFindings& backend : backends) {
    for (const DeviceFindings& device : backend.devices) {
      if (std::any_of(device.tests.begin(), device.tests.end(), has_problem)) return false;
    }
  }
  return anyDevice();
}

Examination examineMachine(const std::string& wanted) {
  Examination all;
  all.kernel_module = nvidiaModule();
  all.environment = environmentSettings();
  for (const Backend* const backend : backends()) {
    if (wanted.empty() ? backend->simulated : backend->name != wanted) continue;
    all.backends.push_back(examineBackend(*backend));
  }
  try {
    all.run_library = preloadLibrary().string();
  } catch (const Error& error) {
    all.run_problem = error.what();
  }
  return all;
}

}  // namespace cistern::command
