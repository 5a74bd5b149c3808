#include "allocator/device/open.hpp"

#include <bit>

#include <fmt/format.h>

#include "allocator/device/sim/sim_device.hpp"
#include "allocator/device/vendor/vendor.hpp"
#include "cistern/device.hpp"
#include "cistern/error.hpp"

namespace cistern {
namespace {

using OpenFunction = Result<std::unique_ptr<Device>> (*)(int ordinal);

constexpr int kSimulatedDevices = 8;  // as many ordinals as sim::SimConfig takes

void requireOrdinal(std::string_view backend, int ordinal, int devices) {
  if (ordinal < devices) return;
  throw InvalidArgument(fmt::format("device ordinal {} of backend {}: must be 0 to {}", ordinal,
                                    backend, devices - 1));
}

/// Pre: `count` is what the backend's deviceCount returned.
std::unique_ptr<Device> openVendor(std::string_view backend, Result<int> count, OpenFunction open,
                                   int ordinal) {
  requireOrdinal(backend, ordinal, std::move(count).orThrow());
  return open(ordinal).orThrow();
}

std::unique_ptr<Device> openSimulated(int ordinal) {
  requireOrdinal("sim", ordinal, kSimulatedDevices);
  sim::SimConfig config;
  config.ordinal = ordinal;
  return std::make_unique<sim::SimDevice>(config);
}

/// Whether "auto" goes on to the next backend: this one is not here, as opposed to broken.
bool passedOver(bool compiled_in, const Result<int>& count) {
  return !compiled_in || (!count && count.error().kind == ErrorKind::kNoDevice);
}

std::unique_ptr<Device> openFirstPresent(int ordinal) {
  Result<int> count = cuda::deviceCount();
  if (!passedOver(cuda::compiledIn(), count)) {
    return openVendor("cuda", std::move(count), cuda::open, ordinal);
  }
  count = hip::deviceCount();
  if (!passedOver(hip::compiledIn(), count)) {
    return openVendor("hip", std::move(count), hip::open, ordinal);
  }
  return openSimulated(ordinal);
}

}  // namespace

std::unique_ptr<sim::SimulatedDevice> sim::makeDevice(const SimConfig& config) {
  if (config.ordinal < 0) {
    throw InvalidArgument(fmt::format("device ordinal {}: must be 0 or more", config.ordinal));
  }
  requireOrdinal("sim", config.ordinal, kSimulatedDevices);
  if (!std::has_single_bit(config.granularity)) {
    throw InvalidArgument(
        fmt::format("granularity {}: must be a power of two", config.granularity));
  }
  constexpr std::uint64_t kDay = 86'400'000'000'000;  // so that its clock does not run over
  if (config.gpu_lag_ns > kDay) {
    throw InvalidArgument(
        fmt::format("gpu_lag_ns {}: must be {} at most, a day", config.gpu_lag_ns, kDay));
  }
  return std::make_unique<SimDevice>(config);
}

std::unique_ptr<Device> openDevice(std::string_view backend, int ordinal) {
  if (ordinal < 0) {
    throw InvalidArgument(fmt::format("device ordinal {}: must be 0 or more", ordinal));
  }
  if (backend == "auto") return openFirstPresent(ordinal);
  if (backend == "cuda") return openVendor("cuda", cuda::deviceCount(), cuda::open, ordinal);
  if (backend == "hip") return openVendor("hip", hip::deviceCount(), hip::open, ordinal);
  if (backend == "sim") return openSimulated(ordinal);
  throw InvalidArgument(
      fmt::format("unknown backend '{}': must be auto, cuda, hip or sim", backend));
}

int devicesBeside(const Device& device) {
  if (device.backend() == "sim") return kSimulatedDevices;
  const Result<int> count = device.backend() == "cuda" ? cuda::deviceCount() : hip::deviceCount();
  return count ? count.value() : kSimulatedDevices;
}

}  // namespace cistern
