#include "allocator/device/sim/sim_backend.hpp"

#include <bit>

#include <fmt/format.h>

#include "allocator/device/open.hpp"
#include "allocator/device/sim/sim_device.hpp"
#include "cistern/error.hpp"

namespace cistern::sim {
namespace {

Result<int> simulatedCount() { return kDevices; }

/// With the default configuration. Pre: 0 <= ordinal < kDevices.
Result<std::unique_ptr<Device>> openSimulated(int ordinal) try {
  SimConfig config;
  config.ordinal = ordinal;
  return std::unique_ptr<Device>(std::make_unique<SimDevice>(config));
} catch (const Error& none) {
  return DeviceError{Call::kReserve, ErrorKind::kOutOfMemory, 0, "no addresses", none.what()};
}

}  // namespace

constinit const Backend kTableEntry{
    .name = "sim",
    .compiled_in = true,
    .simulated = true,
    .deviceCount = simulatedCount,
    .open = openSimulated,
    .deviceSwitch = nullptr,
};

std::unique_ptr<SimulatedDevice> makeDevice(const SimConfig& config) {
  if (config.ordinal < 0) {
    throw InvalidArgument(fmt::format("device ordinal {}: must be 0 or more", config.ordinal));
  }
  requireOrdinal(kTableEntry, config.ordinal, kDevices);
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

}  // namespace cistern::sim
