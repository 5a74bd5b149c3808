#include "allocator/device/open.hpp"

#include <fmt/format.h>

#include "allocator/base/current_device.hpp"
#include "allocator/device/sim/sim_backend.hpp"
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

std::unique_ptr<Device> openDevice(std::string_view name, int ordinal) {
  if (ordinal < 0) {
    throw InvalidArgument(fmt::format("device ordinal {}: must be 0 or more", ordinal));
  }
  if (name == "auto") return openFirstPresent(ordinal);
  if (const Backend* const backend = findBackend(name)) {
    return openOf(*backend, backend->deviceCount(), ordinal);
  }
  throw InvalidArgument(
      fmt::format("unknown backend '{}': must be auto, {}", name, backendNames()));
}

int devicesBeside(const Device& device) {
  const Backend* const backend = findBackend(device.backend());
  if (backend == nullptr) return 1;
  const Result<int> count = backend->deviceCount();
  return count ? count.value() : kMaxDevices;
}

}  // namespace cistern
