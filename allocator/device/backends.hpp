// The table of backends: what is known of each of them before a device is open. Code that depends
// on a device's backend looks the name up here. Read next: open.cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cistern/device.hpp"

namespace cistern {

struct DeviceSwitch;

/// A row of the table. A backend's folder defines one, with static lifetime.
struct Backend {
  std::string_view name;  ///< as openDevice and Device::backend() know it
  bool compiled_in;       ///< whether this build has it, whatever the machine
  /// The devices are a model: their clock is virtual, and their addresses are not memory.
  bool simulated;
  /// How many devices this process can open: at least 1. Fails with kNoDevice without a driver or a
  /// device. Fails with kNotSupported when the build has no such backend. Fails with the vendor's
  /// own failure when the driver does not work.
  Result<int> (*deviceCount)();
  /// The device with that ordinal, ready for calls. Fails like deviceCount, and with kNoDevice when
  /// the ordinal is not in [0, deviceCount()).
  Result<std::unique_ptr<Device>> (*open)(int ordinal);
  /// The functions that read and set a thread's current device. Every DeviceGuard uses them once
  /// openDevice has opened a device. Null for a backend whose threads have no current device.
  const DeviceSwitch& (*deviceSwitch)() noexcept;
  /// The version and the file of the vendor's runtime that this process uses, for people to read;
  /// empty without one. Null for a backend that has no runtime.
  std::string (*runtime)() = nullptr;
};

/// Every row, in the order in which "auto" tries them.
std::vector<const Backend*> backends();

/// The row of that name; null if there is none.
const Backend* findBackend(std::string_view name) noexcept;

/// Whether that is the name of a simulated backend.
bool isSimulated(std::string_view name) noexcept;

/// The names as a message lists them: "cuda, hip or sim".
std::string backendNames();

/// Adds a row at the end of the table, for a backend that stands outside this library. Thread-safe.
/// Pre: the name is new, and `backend` lives as long as the process.
void addBackend(const Backend& backend) noexcept;

}  // namespace cistern
