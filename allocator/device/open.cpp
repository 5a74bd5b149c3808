#include "allocator/device/open.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "allocator/base/current_device.hpp"
#include "allocator/base/text.hpp"
#include "allocator/device/sim/sim_backend.hpp"
#include "allocator/device/vendor/absent.hpp"
#include "cistern/error.hpp"

namespace cistern {
namespace {

/// Pre: `count` is what the backend's deviceCount returned.
std::unique_ptr<Device> openOf(const Backend& backend, Result<int> count, int ordinal) {
  requireOrdinal(backend, ordinal, std::move(count).orThrow());
  std::unique_ptr<Device> device = backend.open(ordinal).orThrow();
  if (backend.deviceSwitch != nullptr) addDeviceSwitch(backend.deviceSwitch());
  return device;
}

/// Whether "auto" goes on to the next backend: this one is not here, as opposed to broken.
bool passedOver(const Backend& backend, const Result<int>& count) {
  return !backend.compiled_in || (!count && count.error().kind == ErrorKind::kNoDevice);
}

std::string unknownName(std::string_view name) {
  std::vector<std::string_view> known{"auto"};
  for (const Backend* const backend : backends()) known.push_back(backend->name);
  const std::string near(nearestOf(name, known));
  return fmt::format("unknown backend '{}': must be auto, {}{}", name, backendNames(),
                     near.empty() ? "" : "; did you mean " + near + "?");
}

std::unique_ptr<Device> openFirstPresent(int ordinal) {
  for (const Backend* const backend : backends()) {
    if (backend->simulated) continue;
    Result<int> count = backend->deviceCount();
    if (!passedOver(*backend, count)) return openOf(*backend, std::move(count), ordinal);
  }
  return openOf(sim::kTableEntry, sim::kDevices, ordinal);
}

}  // namespace

void requireOrdinal(const Backend& backend, int ordinal, int devices) {
  if (ordinal < devices) return;
  throw InvalidArgument(fmt::format("device ordinal {} of backend {}: must be 0 to {}", ordinal,
                                    backend.name, devices - 1));
}

bool hasVendor(const std::vector<const Backend*>& table) {
  return std::any_of(table.begin(), table.end(), [](const Backend* backend) {
    return backend->compiled_in && !backend->simulated;
  });
}

std::string whySimulated(const std::vector<const Backend*>& table) {
  if (hasVendor(table)) return "no GPU is found here";
  return builtWithout("CUDA and HIP", fmt::format("{} or {}", kCudaSdk, kHipSdk));
}

std::string backendOfEnvironment() {
  const char* const name = std::getenv("CISTERN_BACKEND");
  if (name == nullptr || *name == '\0') return "auto";
  if (std::string_view(name) == "auto" || findBackend(name) != nullptr) return name;
  throw InvalidArgument("CISTERN_BACKEND: " + unknownName(name));
}

std::unique_ptr<Device> openDevice(std::string_view name, int ordinal) {
  if (ordinal < 0) {
    throw InvalidArgument(fmt::format("device ordinal {}: must be 0 or more", ordinal));
  }
  std::string named;
  if (name == "auto") name = named = backendOfEnvironment();
  if (name == "auto") return openFirstPresent(ordinal);
  if (const Backend* const backend = findBackend(name)) {
    return openOf(*backend, backend->deviceCount(), ordinal);
  }
  throw InvalidArgument(unknownName(name));
}

int devicesBeside(const Device& device) {
  const Backend* const backend = findBackend(device.backend());
  if (backend == nullptr) return 1;
  const Result<int> count = backend->deviceCount();
  return count ? count.value() : kMaxDevices;
}

}  // namespace cistern
